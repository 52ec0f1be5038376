"""``python -m nextword``, and where the commands `nextword` and `nw` begin."""

from __future__ import annotations

from nextword.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
