"""The door: what `asched` does first, written in modules that the interpreter has at hand."""

from asched.cli import late, packed_code


def main(arguments: list[str] | None = None) -> int:
    """Run the command that the words, by default those of this process, name."""
    if arguments is None:  # a process of our own, and not a test
        packed_code.use()
        late.use()
    from asched.cli import commands

    return commands.main(arguments)
