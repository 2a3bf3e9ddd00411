"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# A busy machine is no failure: nothing here is measured by the clock.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
