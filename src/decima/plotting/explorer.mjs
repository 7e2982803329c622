// Behaviour of the page that explorer.py makes: draws the visible part of each schedule and says what is under the pointer.
// Bokeh evaluates this module once per page and calls the function below at every event.

const MOST_BLOCKS = 6000 // drawn one by one up to here; beyond, the chart is a grid of cells
const MOST_OUTLINED = 1500 // tasks of one job stay apart, with an outline each, up to here
const MOST_CELLS = 16000
const FAINT = "#D5D3DC" // other jobs than the one that is kept

let ready = false
let frame = null
let pointed = {run: 0, job: -1, stage: -1, time: NaN} // what the pointer was on last
let kept = -1 // the job that was clicked
let keptStage = -1

export default function (page, source, event) {
  if (!ready) {
    ready = true
    prepare(page)
  }
  const name = event?.event_name ?? source?.event_name ?? "change"
  const origin = event?.origin ?? source?.origin ?? source
  if (name === "mousemove") point(page, origin, source)
  else if (name === "mouseleave") leave(page)
  else if (name === "tap") keep(page, origin, source)
  else schedule(page)
}

// --- what is computed once -----------------------------------------------------------------------------------------

function prepare({runs, jobs}) {
  for (const run of runs) {
    const total = jobs.stages[jobs.stages.length - 1]
    run.ready = new Float64Array(total) // when all parents had finished
    run.last = new Int32Array(total).fill(-1) // the parent that finished last
    run.begun = new Float64Array(total).fill(Infinity)
    run.done = new Float64Array(total).fill(-Infinity)
    run.launched = new Int32Array(total)
    for (let task = 0; task < run.job.length; task++) {
      const stage = jobs.stages[run.job[task]] + run.stage[task]
      run.begun[stage] = Math.min(run.begun[stage], run.start[task])
      run.done[stage] = Math.max(run.done[stage], run.finish[task])
      run.launched[stage] += 1
    }
    run.tasks = new Int32Array(total)
    jobs.names.forEach((_, job) => {
      const graph = jobs.graphs[jobs.graph[job]]
      for (let stage = jobs.stages[job]; stage < jobs.stages[job + 1]; stage++) {
        const own = stage - jobs.stages[job]
        run.tasks[stage] = graph ? graph.tasks[own] : run.launched[stage]
        if (run.launched[stage] < run.tasks[stage]) run.done[stage] = Infinity
      }
      for (let stage = jobs.stages[job]; stage < jobs.stages[job + 1]; stage++) {
        run.ready[stage] = jobs.arrival[job]
        for (const parent of graph ? graph.parents[stage - jobs.stages[job]] : []) {
          if (run.done[jobs.stages[job] + parent] > run.ready[stage]) {
            run.ready[stage] = run.done[jobs.stages[job] + parent]
            run.last[stage] = parent
          }
        }
      }
    })
  }
}

// --- drawing -------------------------------------------------------------------------------------------------------

function schedule(page) {
  if (frame !== null) return
  frame = requestAnimationFrame(() => {
    frame = null
    page.runs.forEach((_, index) => draw(page, index))
  })
}

function draw({runs, jobs, charts, views, across}, index) {
  const chart = charts[index]
  const box = {
    left: across.start, right: across.end, bottom: chart.y_range.start, top: chart.y_range.end,
    width: chart.inner_width || 800, height: chart.inner_height || 300,
  }
  views[index].data = blocks(runs[index], jobs, box) ?? cells(runs[index], jobs, box)
}

// Place of the first task of an executor that finishes after a time.
function place(run, executor, time) {
  let low = run.first[executor]
  let high = run.first[executor + 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (run.finish[middle] > time) high = middle
    else low = middle + 1
  }
  return low
}

function shown(box, run) {
  const low = Math.max(0, Math.floor(box.bottom + 0.5))
  return [low, Math.min(run.executors - 1, Math.ceil(box.top - 0.5))]
}

function tasksIn(run, box) {
  const [low, high] = shown(box, run)
  let number = 0
  for (let executor = low; executor <= high; executor++) {
    number += 1 + place(run, executor, box.right) - place(run, executor, box.left)
  }
  return number
}

function* visible(run, box) {
  const [low, high] = shown(box, run)
  for (let executor = low; executor <= high; executor++) {
    const end = run.first[executor + 1]
    for (let task = place(run, executor, box.left); task < end && run.start[task] < box.right; task++) {
      yield [executor, task]
    }
  }
}

const empty = () => ({left: [], right: [], bottom: [], top: [], color: [], line: []})

function add(data, jobs, left, right, bottom, top, job, faint, line) {
  data.left.push(left)
  data.right.push(right)
  data.bottom.push(bottom)
  data.top.push(top)
  data.color.push(faint ? FAINT : jobs.colors[job])
  data.line.push(line)
}

const faint = (job, stage) => kept >= 0 && (job !== kept || (keptStage >= 0 && stage !== keptStage))

// Tasks one by one, those of a job that follow each other in one block; null where there are too many.
function blocks(run, jobs, box) {
  const tasks = tasksIn(run, box)
  if (tasks > 20 * MOST_BLOCKS) return null
  const apart = tasks <= MOST_OUTLINED
  const gap = (box.right - box.left) / box.width / 4
  const data = empty()
  let before = -1
  let row = -1
  for (const [executor, task] of visible(run, box)) {
    const job = run.job[task]
    const last = data.left.length - 1
    const joins = !apart && row === executor && run.job[before] === job && run.start[task] - data.right[last] <= gap &&
      faint(job, run.stage[before]) === faint(job, run.stage[task])
    if (joins) data.right[last] = run.finish[task]
    else {
      if (last >= MOST_BLOCKS) return null
      add(data, jobs, run.start[task], run.finish[task], executor - 0.5, executor + 0.5, job,
        faint(job, run.stage[task]), apart ? 0.6 : 0)
    }
    before = task
    row = executor
  }
  return data
}

// A grid as fine as the screen: each cell has the colour of the job that had most of its time, or is left idle.
function cells(run, jobs, box) {
  const [low, high] = shown(box, run)
  const group = Math.max(1, Math.ceil((1.5 * (high - low + 1)) / box.height))
  const rows = Math.ceil((high - low + 1) / group)
  const columns = Math.max(50, Math.min(Math.floor(box.width), Math.floor(MOST_CELLS / rows)))
  const width = (box.right - box.left) / columns
  const data = empty()
  for (let row = 0; row < rows; row++) {
    const bottom = low + row * group
    const top = Math.min(high, bottom + group - 1)
    const time = Array.from({length: columns}, () => null)
    for (const [, task] of visible(run, {...box, bottom, top})) {
      const key = faint(run.job[task], run.stage[task]) ? -1 - run.job[task] : run.job[task]
      const begin = Math.max(0, Math.floor((run.start[task] - box.left) / width))
      const end = Math.min(columns - 1, Math.floor((run.finish[task] - box.left) / width))
      for (let cell = begin; cell <= end; cell++) {
        const edge = box.left + cell * width
        const part = Math.min(run.finish[task], edge + width) - Math.max(run.start[task], edge)
        time[cell] ??= new Map()
        time[cell].set(key, (time[cell].get(key) ?? 0) + part)
      }
    }
    let previous = null
    for (let cell = 0; cell < columns; cell++) {
      let busy = 0
      let best = null
      for (const [key, part] of time[cell] ?? []) {
        busy += part
        if (best === null || part > time[cell].get(best)) best = key
      }
      if (busy < 0.5 * width * (top - bottom + 1)) best = null
      const edge = box.left + cell * width
      if (best !== null && best === previous) data.right[data.right.length - 1] = edge + width
      else if (best !== null) {
        add(data, jobs, edge, edge + width, bottom - 0.5, top + 0.5, best < 0 ? -1 - best : best, best < 0, 0)
      }
      previous = best
    }
  }
  return data
}

// --- pointer -------------------------------------------------------------------------------------------------------

const number = (value, noun) => `${value} ${noun}${value === 1 ? "" : "s"}`
const seconds = (value) => `${value.toFixed(Math.abs(value) < 100 ? 2 : 1)} s`
const escape = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)

function point(page, origin, event) {
  const {charts, spans, cursors, graph} = page
  if (origin === graph) return
  for (const span of spans) {
    span.location = event.x
    span.visible = true
  }
  const index = charts.indexOf(origin)
  pointed = {...pointed, time: event.x, run: index < 0 ? pointed.run : index, stage: -1}
  cursors.forEach((cursor, other) => {
    const nothing = {left: [], right: [], bottom: [], top: [], text: []}
    cursor.data = other === index ? under(page, index, event) ?? nothing : nothing
  })
  show(page)
}

// The task or the idle time under the pointer, as the row of a source.
function under({runs, jobs}, index, event) {
  const run = runs[index]
  const executor = Math.round(event.y)
  const time = event.x
  if (executor < 0 || executor >= run.executors || time < 0) return null
  const task = place(run, executor, time)
  const system = number(inSystem(run, time), "job") + " in the system"
  const row = (left, right, text) =>
    ({left: [left], right: [right], bottom: [executor - 0.5], top: [executor + 0.5], text: [text]})
  if (task < run.first[executor + 1] && run.start[task] <= time) {
    const job = run.job[task]
    const stage = jobs.stages[job] + run.stage[task]
    pointed.job = job
    pointed.stage = run.stage[task]
    const lines = [
      `<b>${escape(jobs.names[job])}</b> (job ${job}), stage ${stageName(jobs, job, run.stage[task])}, ` +
        `executor ${executor}`,
      `task ${rank(run, task) + 1} of ${run.tasks[stage]}: ${seconds(run.start[task])} to ` +
        `${seconds(run.finish[task])} (${seconds(run.finish[task] - run.start[task])})`,
      waited(run, jobs, task, job, stage),
      system,
    ]
    return row(run.start[task], run.finish[task], lines.join("<br>"))
  }
  const left = task > run.first[executor] ? run.finish[task - 1] : 0
  const right = task < run.first[executor + 1] ? run.start[task] : Math.max(...lasts(run))
  if (time > right) return null
  return row(left, right, `<b>idle</b>, executor ${executor}, ${seconds(left)} to ${seconds(right)}<br>` +
    `${idleReason(run, jobs, task, executor, time)}<br>${system}`)
}

const lasts = (run) => (run.ends ??= [run.finish.reduce((most, value) => Math.max(most, value), 0)])

function stageName(jobs, job, stage) {
  const name = jobs.graphs[jobs.graph[job]]?.names[stage]
  return name === undefined || name === String(stage) ? `${stage}` : `${stage} (${escape(name)})`
}

// Number of tasks of the same stage that started before.
function rank(run, task) {
  let before = 0
  for (let other = 0; other < run.job.length; other++) {
    const same = run.job[other] === run.job[task] && run.stage[other] === run.stage[task]
    if (same && (run.start[other] < run.start[task] || (run.start[other] === run.start[task] && other < task))) before++
  }
  return before
}

function waited(run, jobs, task, job, stage) {
  const since = run.ready[stage]
  const cause = run.last[stage] < 0
    ? `its job arrived at ${seconds(since)}`
    : `its stage waited for stage ${stageName(jobs, job, run.last[stage])} until ${seconds(since)}`
  const rest = run.start[task] - since
  if (rest <= 1e-9) return `${cause}; it started at once`
  const moved = run.fresh[task] && run.moving > 0 ? `, of which the executor took ${seconds(run.moving)} to move` : ""
  return `${cause}; then it waited ${seconds(rest)} for an executor${moved}`
}

const count = (times, time) => {
  let low = 0
  let high = times.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (times[middle] <= time) low = middle + 1
    else high = middle
  }
  return low
}

const inSystem = (run, time) => count(run.arrivals, time) - count(run.completions, time)

const moving = (run, task, executor, time) =>
  task < run.first[executor + 1] && run.fresh[task] && time >= run.start[task] - run.moving && time < run.start[task]

function idleReason(run, jobs, task, executor, time) {
  if (moving(run, task, executor, time)) {
    const job = run.job[task]
    return `it moves to ${escape(jobs.names[job])} (job ${job}), which takes ${seconds(run.moving)}`
  }
  if (inSystem(run, time) === 0) return "there is no job in the system"
  if (!jobs.graphs.length) return "no task was started here"
  let open = 0 // tasks that could start, less the executors that are on their way to one
  for (let stage = 0; stage < run.tasks.length; stage++) if (run.ready[stage] <= time) open += run.tasks[stage]
  for (let other = 0; other < run.job.length; other++) if (run.start[other] <= time) open -= 1
  for (let other = 0; other < run.executors; other++) {
    const next = place(run, other, time)
    if (moving(run, next, other, time)) open -= 1
  }
  if (open <= 0) return "no task could start: all that are left wait for parent stages"
  const withheld = slotsAt(run, time)
  const held = withheld ? `, ${number(withheld, "stage")} withheld by an idle slot` : ""
  return `the scheduler keeps it free (${number(open, "task")} could start${held})`
}

// Number of deliberate idle slots at a time.
function slotsAt(run, time) {
  const number = run.slots.length / 2
  let found = 0
  for (let slot = 0; slot < number; slot++) found += run.slots[slot] <= time && time < run.slots[number + slot]
  return found
}

function leave(page) {
  for (const span of page.spans) span.visible = false
  for (const cursor of page.cursors) cursor.data = {left: [], right: [], bottom: [], top: [], text: []}
}

function keep(page, origin, event) {
  const {charts, graph, nodes} = page
  if (origin === graph) {
    const found = nearest(nodes.data, event)
    if (found < 0 || pointed.job < 0) return
    keptStage = kept >= 0 && keptStage === found ? -1 : found
    kept = pointed.job
  } else {
    const index = charts.indexOf(origin)
    if (index < 0) return
    kept = -1
    keptStage = -1
    const before = pointed.job
    pointed.job = -1
    under(page, index, event)
    kept = pointed.job
    if (pointed.job < 0) pointed.job = before
  }
  show(page)
  schedule(page)
}

function nearest(data, event) {
  let best = -1
  let least = 0.25
  for (let stage = 0; stage < data.x.length; stage++) {
    const away = (data.x[stage] - event.x) ** 2 + (data.y[stage] - event.y) ** 2
    if (away < least) [best, least] = [stage, away]
  }
  return best
}

// --- DAG of the job under the pointer ------------------------------------------------------------------------------

let drawn = -1

function show({runs, jobs, graph, nodes, edges}) {
  const job = kept >= 0 ? kept : pointed.job
  if (job < 0 || jobs.graph[job] < 0) return
  const run = runs[pointed.run]
  const {x, y, names, tasks, parents} = jobs.graphs[jobs.graph[job]]
  const time = pointed.time
  if (drawn !== job) {
    drawn = job
    const pairs = parents.flatMap((before, child) => before.map((parent) => [parent, child]))
    edges.data = {
      xs: pairs.map(([parent, child]) => [x[parent], x[child]]), ys: pairs.map(([parent, child]) => [y[parent], y[child]]),
    }
    fit(graph.x_range, x)
    fit(graph.y_range, y)
  }
  const data = {x: [], y: [], size: [], color: [], line: [], width: [], text: [], label: []}
  const most = Math.max(...tasks)
  let finished = 0
  names.forEach((_, own) => {
    const stage = jobs.stages[job] + own
    const begun = run.begun[stage] <= time
    const done = run.done[stage] <= time
    const open = run.ready[stage] <= time
    finished += done
    const state = done ? "finished" : begun ? "runs" : open ? "could start" : "waits for its parents"
    data.x.push(x[own])
    data.y.push(y[own])
    data.label.push(`${own}`)
    data.size.push(9 + 13 * Math.sqrt(tasks[own] / most))
    data.color.push(done ? "#BBBBBB" : begun ? jobs.colors[job] : "#FFFFFF")
    const marked = own === (keptStage >= 0 ? keptStage : pointed.job === job ? pointed.stage : -1)
    data.line.push(marked ? "#000000" : open ? "#0072B2" : "#999999")
    data.width.push(marked ? 4 : 1.5)
    const ran = run.launched[stage] ? `, ran ${seconds(run.begun[stage])} to ${finish(run.done[stage])}` : ""
    data.text.push(`<b>stage ${stageName(jobs, job, own)}</b> ${state}<br>${number(tasks[own], "task")}, ` +
      `could start from ${finish(run.ready[stage])}${ran}`)
  })
  nodes.data = data
  const at = Number.isFinite(time) ? ` at ${seconds(time)}` : ""
  graph.title.text = `${jobs.names[job]} (job ${job})${at}\n${finished} of ${names.length} stages finished`
}

const finish = (value) => (Number.isFinite(value) ? seconds(value) : "never")

function fit(range, values) {
  const low = values.reduce((least, value) => Math.min(least, value), Infinity)
  const high = values.reduce((most, value) => Math.max(most, value), -Infinity)
  const half = Math.max(1, 0.62 * (high - low))
  range.setv({start: (low + high) / 2 - half, end: (low + high) / 2 + half})
}
