"""The simulated cluster as a Gymnasium environment; importing this package registers `decima/SparkCluster-v0`.

    import decima, gymnasium

    gymnasium.register_envs(decima.gym)
    env = gymnasium.make("decima/SparkCluster-v0", workload=jobs, executors=20)

`gymnasium.make("decima.systems.spark.gym:decima/SparkCluster-v0")` does both in one call: Gymnasium imports what stands
before the colon. `decima/SparkClusterFlat-v0` is the same with one row of numbers as observation and one whole number
as action.
"""

from gymnasium.envs.registration import WrapperSpec, register, registry

ENVIRONMENT_ID, FLAT_ID = "decima/SparkCluster-v0", "decima/SparkClusterFlat-v0"

if ENVIRONMENT_ID not in registry:
    _ENTRY_POINT = "decima.systems.spark.gym.environment:SparkClusterEnv"
    _WRAPPERS = ("decima.systems.spark.gym.environment:NumberedActions", "gymnasium.wrappers:FlattenObservation")
    register(
        id=ENVIRONMENT_ID,
        entry_point=_ENTRY_POINT,
        vector_entry_point="decima.systems.spark.gym.vector:SparkClusterVectorEnv",
    )
    register(
        id=FLAT_ID,
        entry_point=_ENTRY_POINT,
        additional_wrappers=tuple(WrapperSpec(path.split(":")[1], path, {}) for path in _WRAPPERS),
    )
