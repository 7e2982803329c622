"""Islam, Karunasekera and Buyya: Performance and Cost-Efficient Spark Job Scheduling Based on Deep RL in Clouds."""
