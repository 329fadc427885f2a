"""Spark, Dask and Ray with two processes each, started once for all tests."""

import functools
import os
import sys

import pyarrow as pa


class Spark:
    def start(self):
        from pyspark.sql import SparkSession

        os.environ.update(PYSPARK_PYTHON=sys.executable, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
        builder = SparkSession.builder.master("local[2, 4]")
        settings = {"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 3, "spark.task.maxFailures": 4}
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()

    def stop(self):
        self.session.stop()

    def use_new_processes(self):
        """Spark keeps its processes for jobs with the same variables."""
        self.session.sparkContext.environment["JOB"] = os.urandom(8).hex()

    def table(self, frame, partitions):
        return self.session.createDataFrame(pa.Table.from_pandas(frame, preserve_index=False)).repartition(partitions)

    def grouped(self, frame, key, partitions):
        return self.table(frame, 1).repartition(partitions, key)

    def rows(self, found):
        return found.toPandas()


class Dask:
    def start(self):
        import dask
        import distributed

        dask.config.set({"dataframe.convert-string": False})  # lists stay lists
        self.cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        self.client = distributed.Client(self.cluster)

    def stop(self):
        self.client.close()
        self.cluster.close()

    def table(self, frame, partitions):
        import dask.dataframe

        return dask.dataframe.from_pandas(frame.sample(frac=1.0, random_state=0), npartitions=partitions, sort=False)

    def grouped(self, frame, key, partitions):
        return self.table(frame, 2).shuffle(key, npartitions=partitions)

    def rows(self, found):
        return found.compute()


class Ray:
    def start(self):
        import ray

        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False)
        ray.data.DataContext.get_current().default_hash_shuffle_parallelism = 4  # of 200, for a small table

    def stop(self):
        import ray

        ray.shutdown()

    def use_new_processes(self):
        """Ray Train starts some for each training."""

    def table(self, frame, partitions):
        import ray

        table = pa.Table.from_pandas(frame.sample(frac=1.0, random_state=0), preserve_index=False)
        return ray.data.from_arrow(table).repartition(partitions)

    def grouped(self, frame, key, partitions):
        return self.table(frame, 2).repartition(partitions, keys=[key])

    def rows(self, found):
        return found.to_pandas()


@functools.cache
def started(engine, config):
    """Returns the engine, which runs until the end of the tests of this configuration of pytest."""
    found = engine()
    found.start()
    config.add_cleanup(found.stop)
    return found
