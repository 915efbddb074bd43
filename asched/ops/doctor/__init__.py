"""What an installation lacks, each with its cure."""
