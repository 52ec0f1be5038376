"""The modules that need no browser, tested by node's own test runner."""

import os
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest


@pytest.mark.needs("node")
def test_modules_hold_what_they_say(tmp_path):
    page = Path(str(resources.files("nextword.page")))
    for path in page.glob("*.js"):
        shutil.copy(path, tmp_path / path.name)
    (tmp_path / "package.json").write_text('{"type": "module"}')  # in a browser every script is a module
    command = ["node", "--test", str(Path(__file__).with_name("modules.test.mjs"))]
    environment = {**os.environ, "NEXTWORD_PAGE": tmp_path.as_uri()}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-2000:]
    assert "# fail 0" in found.stdout or "fail 0" in found.stdout
