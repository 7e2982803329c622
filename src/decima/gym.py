"""The systems as Gymnasium environments; importing this module registers them.

`decima/SparkCluster-v0` is the simulated Spark cluster, `decima/VmPlacement-v0` executors on cloud VMs,
`decima/HeterogeneousExecutors-v0` list scheduling on executors of different speed.

    >>> import decima.gym, gymnasium
    >>> env = gymnasium.make("decima/SparkCluster-v0", workload=decima.workload.embedded_batch(2), executors=4)
    >>> observation, info = env.reset(seed=0)
    >>> info["action_mask"][1].shape
    (4,)
"""

import decima.systems.cloud.gym
import decima.systems.heterogeneous.gym  # noqa: F401
from decima.core.environment import as_scheduler as as_scheduler
from decima.systems.spark.gym import ENVIRONMENT_ID as ENVIRONMENT_ID
from decima.systems.spark.gym.padded import JOB_FEATURES as JOB_FEATURES
from decima.systems.spark.gym.padded import LAYOUT as LAYOUT
from decima.systems.spark.gym.padded import STAGE_FEATURES as STAGE_FEATURES
