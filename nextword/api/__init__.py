"""The verbs, one file each, of the same name as in ``cli`` and ``docs``; `Run` has them as its methods.

The package root offers them lazily (``import nextword`` loads nothing heavy), and the command line calls the
same functions. Each long verb has two: one yields events, the other runs it to the end.
"""
