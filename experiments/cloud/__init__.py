"""Islam et al.: Performance and Cost-Efficient Spark Job Scheduling Based on Deep RL in Clouds."""

from experiments.rooms import BASE_ROOMS

# Every room of this system but the optimum, and the learner: agents are trained, too.
ROOMS = (
    *(*BASE_ROOMS, "learning", "learning/algorithms"),
    *("systems/cloud", "systems/cloud/schedulers", "systems/cloud/policy", "-systems/cloud/appearance.py"),
)
