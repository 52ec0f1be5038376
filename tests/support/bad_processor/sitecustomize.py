"""A processor that advertises bf16 and dies of it, for any Python process that has this folder on its path.

NEXTWORD_TEST_CRASH=amx: products of bf16 raise SIGILL unless oneDNN is limited, as under hypervisors that
show AMX and do not let it be used; =bf16: whatever the limit; =fp32: products of LSTM layers in float32, too,
unless there is a limit.
"""

import importlib.util
import os
import signal
import sys
from importlib.abc import MetaPathFinder

KIND = os.environ.get("NEXTWORD_TEST_CRASH", "")


def die_unless_limited(always: bool) -> None:
    if always or not os.environ.get("ONEDNN_MAX_CPU_ISA"):
        os.kill(os.getpid(), signal.SIGILL)


def spoil(torch) -> None:
    enter, lstm = torch.autocast.__enter__, torch._VF.lstm

    def spoiled_enter(self):
        if self.device == "cpu" and self._enabled and self.fast_dtype is torch.bfloat16:
            die_unless_limited(KIND == "bf16")
        return enter(self)

    def spoiled_lstm(*args):
        if KIND == "fp32":
            die_unless_limited(False)
        return lstm(*args)

    torch.autocast.__enter__ = spoiled_enter
    torch._VF.lstm = spoiled_lstm


class Spoiler(MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            spoil(module)

        spec.loader.exec_module = exec_module
        return spec


if KIND:
    sys.meta_path.insert(0, Spoiler())
