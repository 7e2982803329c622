"""The simulated cluster as a Gymnasium environment; importing this package registers `decima/SparkCluster-v0`.

    import decima, gymnasium

    gymnasium.register_envs(decima.gym)
    env = gymnasium.make("decima/SparkCluster-v0", workload=jobs, executors=20)

`gymnasium.make("decima.systems.spark.gym:decima/SparkCluster-v0")` does both in one call: Gymnasium imports what stands
before the colon.
"""

from gymnasium.envs.registration import register, registry

ENVIRONMENT_ID = "decima/SparkCluster-v0"

if ENVIRONMENT_ID not in registry:
    register(id=ENVIRONMENT_ID, entry_point="decima.systems.spark.gym.environment:SparkClusterEnv")
