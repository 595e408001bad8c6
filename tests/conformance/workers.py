"""Shares the tests among the worker processes of pytest-xdist.

A fixture of the session exists once in each worker. So each worker has services of its own, and tests of two workers share no partner and
no address.
"""

from itertools import zip_longest

from xdist.scheduler import LoadScopeScheduling

# Each test of these files may run in another worker. The tests of any other file share fixtures, so one worker runs them in their order.
APART = ("test_alarms.py", "test_checkout.py", "test_fuzzing.py", "test_live.py", "test_web.py")

# These tests keep the processor busy, and the others mostly wait.
OF_BROWSERS = ("test_checkout.py", "test_pages.py", "test_web.py")

# Parts of the names of the longest units. Those of browsers are sorted among themselves. A worker gets its second unit when it begins the
# first one, so two short units come early. A list that is out of date costs time only.
LONGEST = (
    "[e2e/embedded]",
    "[e2e/checkout]",
    "[e2e/price]",
    "[e2e/sleep]",
    "[e2e/languages]",
    "[e2e/network]",
    "[e2e/copying]",
    "[e2e/hosts",
    "[e2e/screens]",
    "[widget/",
    "[sdk/sdk]",
    "[e2e/",
    "[gate-v1]",
    "test_alarms.py",
    "test_operator.py",
    "test_apply.py",
    "test_crash.py",
    "test_races.py",
    "test_webhooks.py",
    "test_pasting.py",
    "[pools-v1]",
    "test_clients.py",
    "test_programs.py",
    "test_hostile.py",
    "test_openapi.py",
    "test_payments.py",
)


class Scheduling(LoadScopeScheduling):
    """Gives a worker one unit of tests after another, in the order of the collection."""

    def __init__(self, config, log=None):
        # The scheduler would otherwise begin with the units of the most tests.
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid):
        return unit_of(nodeid)


def file_of(unit):
    return unit.partition("::")[0].rpartition("/")[2]


def unit_of(nodeid):
    """The unit of a test: what one worker runs without a break."""
    return nodeid if file_of(nodeid) in APART else nodeid.partition("::")[0]


def place(unit):
    """The place of a unit among the longest ones, or after them."""
    return next((place for place, part in enumerate(LONGEST) if part in unit), len(LONGEST))


def arranged(items):
    """The tests in the order in which they begin: the longest units first, those of browsers and the others in turns."""
    units = {}
    for item in items:
        units.setdefault(unit_of(item.nodeid), []).append(item)
    longest_first = sorted(units, key=place)
    of_browsers = [unit for unit in longest_first if file_of(unit) in OF_BROWSERS]
    others = [unit for unit in longest_first if file_of(unit) not in OF_BROWSERS]
    in_turns = [unit for turn in zip_longest(of_browsers, others) for unit in turn if unit]
    return [item for unit in in_turns for item in units[unit]]
