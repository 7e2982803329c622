"""Classes of executors: which stages fit them, and what the rules count by class.

A task runs only on an executor whose memory and CPUs are at least what its stage asks for. Classes ascend in memory,
then in CPUs, so that the best fit of a stage is the first class that it fits. Stages that fit the same classes are a
*group*. Where there is one class, no count by class is kept and every rule is what it would be without classes.

Source: section 7.3 of the paper. Differs: the published simulator has executors of one size.
"""

from decima.core.jit import njit
from decima.systems.spark.fields import NONE

ANY_CLASS = -1


@njit
def of_class(state, index, executor):
    """Index of an executor's class in an array by (index, class)."""
    if state.num_classes == 1:
        return index
    return index * state.num_classes + state.executor_class[executor]


@njit
def fitting_classes(state, stage):
    """Bit mask of the classes that the stage fits."""
    return state.group_fits[state.stage_group[stage]]


@njit
def fits_class(state, stage, executor_class):
    """Whether the tasks of a stage can run on executors of a class."""
    return (fitting_classes(state, stage) >> executor_class) & 1 == 1


@njit
def fitting_offers(state, stage, executor_class):
    """Executors on offer for a stage, of one class or of all that it fits."""
    if state.num_classes == 1:
        return state.num_source
    fits = fitting_classes(state, stage)
    count = 0
    for each in range(state.num_classes):
        if (fits >> each) & 1 and executor_class in (ANY_CLASS, each):
            count += state.class_offers[each]
    return count


@njit
def best_fit(state, stage):
    """Smallest class on offer that the stage fits, ``ANY_CLASS`` if there is none."""
    for executor_class in range(state.num_classes):
        if state.class_offers[executor_class] > 0 and fits_class(state, stage, executor_class):
            return executor_class
    return ANY_CLASS


@njit
def class_kept(state, job, executor_class):
    """Executors of a class that the job keeps, those on offer included."""
    if state.num_classes == 1:
        return state.job_attached[job] + state.job_moving[job] + state.job_commit[job] - state.job_outgoing[job]
    return state.job_class_kept[job * state.num_classes + executor_class]


@njit
def memory_kept(state, job):
    """Memory of the executors of :func:`class_kept`, over all classes."""
    memory = 0.0
    for executor_class in range(state.num_classes):
        memory += class_kept(state, job, executor_class) * state.class_memory[executor_class]
    return memory


# ---- what the rules keep --------------------------------------------------------------------------------------------


@njit
def keep_of_class(state, job, executor, change):
    """Count an executor that the job keeps."""
    if state.num_classes > 1:
        state.job_class_kept[of_class(state, job, executor)] += change


@njit
def no_stage_left(state, job, executor_class):
    """Whether stages of the job have tasks to launch, but none that fits the class."""
    return (
        state.num_classes > 1
        and state.job_unexhausted[job] > 0
        and state.job_class_unexhausted[job * state.num_classes + executor_class] == 0
    )


@njit
def count_unexhausted(state, stage, change):
    """Count the stage as having tasks to launch, by job and by class."""
    job = state.stage_job[stage]
    state.job_unexhausted[job] += change
    if state.num_classes > 1:
        for executor_class in range(state.num_classes):
            if fits_class(state, stage, executor_class):
                state.job_class_unexhausted[job * state.num_classes + executor_class] += change


@njit
def count_runnable_open(state, stage, change):
    """Count the stage among the runnable, unsaturated ones."""
    state.num_runnable_open += change
    if state.num_classes > 1:
        state.group_runnable_open[state.stage_group[stage]] += change
        state.marks_seen = 0


@njit
def file_open(state, stage, member):
    """Keep the group's list of open stages; returns whether the stage is on offer."""
    group = state.stage_group[stage]
    if member != state.stage_open[stage]:
        state.stage_open[stage] = member
        if member:
            after = state.open_head[group]
            state.open_next[stage] = after
            state.open_prev[stage] = NONE
            if after != NONE:
                state.open_prev[after] = stage
            state.open_head[group] = stage
        else:
            before = state.open_prev[stage]
            after = state.open_next[stage]
            if before == NONE:
                state.open_head[group] = after
            else:
                state.open_next[before] = after
            if after != NONE:
                state.open_prev[after] = before
    return member and (state.group_fits[group] & state.offered_classes) != 0


@njit
def classes_of_open(state):
    """Bit mask of the classes that an open stage fits."""
    classes = 0
    for group in range(state.num_groups):
        if state.open_head[group] != NONE:
            classes |= state.group_fits[group]
    return classes


@njit
def classes_of_runnable_open(state):
    """Bit mask of the classes that a runnable, unsaturated stage fits."""
    classes = 0
    for group in range(state.num_groups):
        if state.group_runnable_open[group] > 0:
            classes |= state.group_fits[group]
    return classes


@njit
def pool_classes(state, pool):
    """Bit mask of the classes of the members of a pool that are not reserved."""
    classes = 0
    for executor_class in range(state.num_classes):
        if state.pool_class_open[pool * state.num_classes + executor_class] > 0:
            classes |= 1 << executor_class
    return classes
