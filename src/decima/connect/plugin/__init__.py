"""Plugin with which a scheduling service orders stages of a real Spark; `build` compiles it."""
