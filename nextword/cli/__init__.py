"""The command line: it parses, prints and streams; heavy imports happen inside the commands."""
