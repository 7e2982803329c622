"""Islam et al.: Performance and Cost-Efficient Spark Job Scheduling Based on Deep RL in Clouds."""
