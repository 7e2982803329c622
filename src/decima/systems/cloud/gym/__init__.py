"""Executor placement as a Gymnasium environment; importing this package registers `decima/VmPlacement-v0`.

    import decima.systems.cloud.gym, gymnasium

    gymnasium.register_envs(decima.systems.cloud.gym)
    env = gymnasium.make("decima/VmPlacement-v0", workload="generated:pattern=burst", beta=0.5)

`gymnasium.make("decima.systems.cloud.gym:decima/VmPlacement-v0")` does both in one call: Gymnasium imports what stands
before the colon.
"""

from gymnasium.envs.registration import register, registry

ENVIRONMENT_ID = "decima/VmPlacement-v0"

if ENVIRONMENT_ID not in registry:
    register(id=ENVIRONMENT_ID, entry_point="decima.systems.cloud.gym.environment:VmPlacementEnv")
