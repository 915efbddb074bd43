"""The commands that this distribution adds to the program `asched`, one file each."""
