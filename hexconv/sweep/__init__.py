"""Sweep many cases, those of a grid or random ones; each case runs in a process of its own.

This module imports nothing: planning, writing and reading rows works without TVM, which only those processes load.
"""
