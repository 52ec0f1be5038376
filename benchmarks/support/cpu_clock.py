"""``python -m support.cpu_clock train ...``: nextword, but its minutes are CPU minutes of this process.

So a busy machine trains as much as an idle one; the minutes begin after the imports, and one thread works.
"""

from __future__ import annotations

import time

import torch  # noqa: F401 - imported before the minutes begin

from nextword.api import train  # noqa: F401
from nextword.cli.main import main
from nextword.system import launch

if __name__ == "__main__":
    time.monotonic = time.perf_counter = time.process_time
    began = time.process_time()
    launch.process_start = lambda: began
    main()
