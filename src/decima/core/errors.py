"""Errors a user can meet; each message says what was got, what was expected and where."""


class DecimaError(Exception):
    """Base of every error raised on bad input or failed work; the command line turns it into exit code 2."""

    def __str__(self) -> str:
        # As the plain exception has it: KeyError would show the repr of the message. Half a surrogate pair, out of a
        # JSON text or a path, could not be written anywhere.
        return Exception.__str__(self).encode(errors="backslashreplace").decode()


class ConfigError(DecimaError, ValueError):
    """A parameter is outside its range or of the wrong kind."""


class RecordError(ConfigError):
    """An array given to compiled code is unknown, or of another type, length or content than expected."""


class WorkloadError(DecimaError, ValueError):
    """A job, stage or profile is malformed (cycle, dangling parent, no tasks, bad duration, ...)."""


class DataUnavailableError(DecimaError):
    """A data set is neither on disk nor reachable at any known source."""


class ChecksumError(DecimaError):
    """A file differs from the checksum kept in the project."""


class UnknownSchedulerError(DecimaError, KeyError):
    """No scheduler is registered under that name."""


class SchedulerError(DecimaError):
    """An object offered as a scheduler, or its behaviour, is not what the interface asks for."""


class InvalidDecisionError(DecimaError, ValueError):
    """A scheduler or a replay chose something that cannot be done in the current state."""


class DeadlockError(DecimaError, RuntimeError):
    """No event is left while jobs are unfinished: every executor was parked by the policy."""


class PolicyError(DecimaError):
    """No policy is stored under that name, or its files are damaged or do not belong together."""


class WorkerError(DecimaError, RuntimeError):
    """A worker process, or a machine with workers, died."""


class TrainingError(DecimaError, RuntimeError):
    """Training cannot go on, for example because a gradient is not finite."""


class CheckpointError(DecimaError):
    """A checkpoint cannot be written, read or continued."""


class EventLogError(DecimaError, ValueError):
    """A Spark event log is not one, or is written in a way that is not supported."""


class SparkError(DecimaError, RuntimeError):
    """Real Spark cannot be used here, or a cluster or query of it failed."""


class ServiceError(DecimaError):
    """A scheduling service cannot be started or reached, or refuses or answers wrongly."""
