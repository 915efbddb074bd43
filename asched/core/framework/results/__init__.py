"""What plugins said of a class of pods: cached, brought up to date, folded and ranked."""
