"""Commands: `python -m blocknumba COMMAND`."""
