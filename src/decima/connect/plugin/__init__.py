"""The plugin that lets a scheduling service order the stages of a real Spark; `build` compiles it."""
