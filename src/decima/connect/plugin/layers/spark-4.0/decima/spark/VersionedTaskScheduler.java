package decima.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.TaskDescription;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.TaskSet;
import org.apache.spark.scheduler.WorkerOffer;
import scala.collection.JavaConverters;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** The part of the task scheduler whose types differ between Spark's versions. */
abstract class VersionedTaskScheduler extends TaskSchedulerImpl {
  VersionedTaskScheduler(SparkContext context) {
    super(context);
  }

  /** A round of offers begins; whether it must be followed by another. */
  abstract boolean beforeOffers(List<WorkerOffer> offers);

  /** It has ended, with these tasks. */
  abstract void afterOffers(List<TaskDescription> launched, boolean again);

  @Override
  public synchronized Seq<Seq<TaskDescription>> resourceOffers(
      IndexedSeq<WorkerOffer> offers, boolean isAllFreeResources) {
    boolean again = beforeOffers(JavaConverters.seqAsJavaList(offers));
    Seq<Seq<TaskDescription>> launched = super.resourceOffers(offers, isAllFreeResources);
    List<TaskDescription> tasks = new ArrayList<>();
    for (Seq<TaskDescription> ofOffer : JavaConverters.seqAsJavaList(launched)) {
      tasks.addAll(JavaConverters.seqAsJavaList(ofOffer));
    }
    afterOffers(tasks, again);
    return launched;
  }

  double cpusPerTask() {
    return CPUS_PER_TASK();
  }

  static double cores(WorkerOffer offer) {
    return offer.cores();
  }

  /** Whether its stage runs side by side with its parents, which no stage of these Sparks does. */
  static boolean isPipelined(TaskSet taskSet) {
    return false;
  }
}
