"""The process: composition, the serial loop, tasks, reload, users' plugins, election."""
