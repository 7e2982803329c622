"""List scheduling as a Gymnasium environment; importing this package registers `decima/HeterogeneousExecutors-v0`.

`gymnasium.make("decima.systems.heterogeneous.gym:decima/HeterogeneousExecutors-v0")` imports it.
"""

from gymnasium.envs.registration import register, registry

ENVIRONMENT_ID = "decima/HeterogeneousExecutors-v0"

if ENVIRONMENT_ID not in registry:
    register(id=ENVIRONMENT_ID, entry_point="decima.systems.heterogeneous.gym.environment:HeterogeneousExecutorsEnv")
