"""How a good run is changed so that it breaks a rule of its checker, which must notice."""


def at(*path):
    """The place in a run that attributes and entries lead to."""

    def find(run):
        for key in path:
            run = run[key] if isinstance(run, dict | list) else getattr(run, key)
        return run

    return find


def put(where, **values):
    """The change that gives attributes or entries of a place other values; a function is called with what is there."""

    def change(run):
        found = where(run)
        for name, value in values.items():
            value = value(found) if callable(value) else value
            found.__setitem__(name, value) if isinstance(found, dict) else setattr(found, name, value)

    return change


def add(where, **values):
    """The change that adds numbers to attributes or entries of a place."""
    return lambda run: put(where, **{name: at(name)(where(run)) + value for name, value in values.items()})(run)


def scale(where, **values):
    """The change that multiplies attributes or entries of a place."""
    return lambda run: put(where, **{name: at(name)(where(run)) * value for name, value in values.items()})(run)
