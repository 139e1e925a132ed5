"""Performance as ratios against a bare baseline of the same run; never part of the tests."""
