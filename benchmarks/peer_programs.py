"""Programs that peers run in their own environments: each fills ``found`` with microseconds by work."""

HEAD = """
import json, sys, time, types
from unittest.mock import MagicMock
given = json.load(sys.stdin); sys.argv[1:] = given["arguments"]; sys.path[:0] = given["paths"]
def least_us(run, repeats=3):
    times = []
    for _ in range(repeats):
        begin = time.process_time(); count = run(); times.append(1e6 * (time.process_time() - begin) / count)
    return min(times)
found = {}
"""
SAGA = """
from saga import Network, TaskGraph
from saga.schedulers import CpopScheduler, HeftScheduler
speeds = [1.0 + i / 9.0 for i in range(10)]
for dag in given["dags"]:
    network = Network.create([(str(i), s) for i, s in enumerate(speeds)],
        [(str(i), str(j), 1.0) for i in range(10) for j in range(i)])
    graph = TaskGraph.create([(str(i), c) for i, c in enumerate(dag["work"])],
        [(str(a), str(b), d) for (a, b), d in zip(dag["edges"], dag["data"])])
    for name, scheduler in (("heft", HeftScheduler()), ("cpop", CpopScheduler())):
        found[f"{name}, {len(dag['work'])} nodes"] = least_us(lambda: scheduler.schedule(network, graph) and 1)
"""
DECIMA_SIM = """
from spark_env.env import Environment
from heuristic_agent import DynamicPartitionAgent
env, agent = Environment(), DynamicPartitionAgent()
def run():
    observed, done = env.observe(), False
    while not done:
        observed, _, done = env.step(*agent.get_action(observed))
    return sum(node.num_tasks for job in env.finished_job_dags for node in job.nodes)
times = []
for _ in range(3):  # jobs are read outside of the measured time
    env.seed(0); env.reset(); times.append(least_us(run, 1))
found["200 TPC-H jobs, fair"] = min(times)
"""
SCHED_SIM = """
for name in ("torch", "torch.nn", "schedulers.decima", "spark_sched_sim.components.renderer"):
    sys.modules[name] = MagicMock()
sys.modules["torch"].nn = sys.modules["torch.nn"]
sys.modules["torch.nn"].Module = type("Module", (), {})
import gymnasium, spark_sched_sim
from schedulers.heuristics.round_robin import RoundRobinScheduler
config = {"num_executors": 50, "job_arrival_cap": 200, "job_arrival_rate": 4e-5, "moving_delay": 2000.0,
    "warmup_delay": 1000.0, "data_sampler_cls": "TPCHDataSampler", "render_mode": None}
env, agent = gymnasium.make("spark_sched_sim:SparkSchedSimEnv-v0", env_cfg=config), RoundRobinScheduler(50)
def run():
    observed, over = first, False
    while not over:
        observed, _, terminated, truncated, _ = env.step(agent.schedule(observed)[0])
        over = terminated or truncated
    return sum(stage.num_tasks for job in env.unwrapped.jobs.values() for stage in job.stages)
times = []
for _ in range(2):
    first, _ = env.reset(seed=0); times.append(least_us(run, 1))
found["200 TPC-H jobs, fair"] = min(times)
"""
PLACEMENT = """
import numpy, random, tempfile, os, logging
class PyEnvironment:
    def reset(self): return self._reset()
    def step(self, action): return self._step(action)
for name in ("tensorflow", "tf_agents", "tf_agents.environments", "tf_agents.specs", "tf_agents.trajectories"):
    sys.modules[name] = MagicMock()
sys.modules["tf_agents.environments"].py_environment.PyEnvironment = PyEnvironment
import constants
root, constants.root = constants.root, tempfile.mkdtemp()
for name in ("input", "output"): os.mkdir(f"{constants.root}/{name}")
source = open(f"{given['paths'][0]}/../input/jobs.csv").read()
open(f"{constants.root}/input/jobs.csv", "w").write(source)
import cluster, workload
workload.read_workload(); cluster.init_cluster()
import rm_environment
logging.disable(logging.CRITICAL)
env, chance = rm_environment.ClusterEnv(), random.Random(0)
def run(steps=0):
    for _ in range(20):
        env.reset()
        while not env._episode_ended:
            job = env.jobs[env.job_idx]
            fits = [i + 1 for i, vm in enumerate(env.vms) if vm.cpu_now >= job.cpu and vm.mem_now >= job.mem]
            fits += [0] * (job.ex_placed == 0 and not env.job_queue.empty())
            env.step(chance.choice(fits or [0])); steps += 1
    return steps
found["random valid placements"] = least_us(run)
"""
TAIL = "\nprint(json.dumps(found))"
