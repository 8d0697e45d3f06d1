"""Settings of Hypothesis for these tests."""

from hypothesis import settings

# a deadline per example fails where the machine is busy
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
