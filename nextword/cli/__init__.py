"""The command line: parses, prints, streams; no logic of its own. Heavy parts load inside the commands."""
