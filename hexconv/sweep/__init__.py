"""Many cases to rows: those of a grid, or drawn at random, each in a process apart.

Nothing is imported here: what plans, writes and reads rows works without TVM, whose place is in the processes apart.
"""
