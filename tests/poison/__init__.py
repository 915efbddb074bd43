"""Objects that nobody in their right mind would write, made of the very fields that are read.

python -m tests.poison --seeds 1000      random lives; prints what broke
python -m tests.poison --search 120      looks for the objects that cost most a byte
"""
