"""Errors of the package; each message has the input and what is allowed."""


class DecimaError(Exception):
    """Base of all errors of the package; the command line exits with code 2."""

    def __str__(self) -> str:
        # As the plain exception has it: KeyError would show the repr of the message. Half a surrogate pair, out of a
        # JSON text or a path, could not be written anywhere.
        return Exception.__str__(self).encode(errors="backslashreplace").decode()


class ConfigError(DecimaError, ValueError):
    """A parameter is outside its range or of the wrong type."""


class RenderModeError(ConfigError, TypeError):
    """An environment has no such render mode; libraries that try one catch TypeError."""


class RecordError(ConfigError):
    """Array for compiled code that is unknown or of a wrong type, length or content."""


class WorkloadError(DecimaError, ValueError):
    """A job, stage or profile is malformed (cycle, dangling parent, no tasks, bad duration, ...)."""


class DataUnavailableError(DecimaError):
    """A data set is neither on disk nor reachable at any known source."""


class ChecksumError(DecimaError):
    """A file differs from the checksum kept in the project."""


class UnknownSchedulerError(DecimaError, KeyError):
    """No scheduler is registered under that name."""


class SchedulerError(DecimaError):
    """Scheduler object that does not follow the interface."""


class InvalidDecisionError(DecimaError, ValueError):
    """A scheduler or a replay chose something that cannot be done in the current state."""


class DeadlockError(DecimaError, RuntimeError):
    """No event is left while jobs are unfinished: every executor was parked by the policy."""


class PolicyError(DecimaError):
    """Stored policy that is missing or damaged, or whose files do not belong together."""


class WorkerError(DecimaError, RuntimeError):
    """A worker process, or a machine with workers, died."""


class TrainingError(DecimaError, RuntimeError):
    """Training cannot continue, for example because a gradient is not finite."""


class CheckpointError(DecimaError):
    """A checkpoint cannot be written, read or continued."""


class EventLogError(DecimaError, ValueError):
    """File that is no Spark event log, or one of an unsupported form."""


class SparkError(DecimaError, RuntimeError):
    """Real Spark cannot be used here, or a cluster or query of it failed."""


class ServiceError(DecimaError):
    """A scheduling service cannot be started or reached, or refuses or answers wrongly."""
