#!/bin/sh
# Runs CPython @VERSION@ on @PLATFORM@ with the packages of this environment, which were built for it.
home=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
is_like='import sys, sysconfig
found = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}", sysconfig.get_platform()
sys.exit(found != ("cpython @VERSION@", "@PLATFORM@"))'
for python in "$HEADRACE_PYTHON" @PACKED_WITH@ python@VERSION@ python3; do
  if [ -n "$python" ] && "$python" -c "$is_like" 2>/dev/null; then
    PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$home/site-packages"
    if [ -f "$SPARK_HOME/python/pyspark/__init__.py" ]; then # not in workers, whose PYTHONPATH Spark sets
      for each in "$SPARK_HOME"/python "$SPARK_HOME"/python/lib/py4j-*-src.zip; do
        PYTHONPATH="$PYTHONPATH:$each"
      done
    fi
    PYTHONNOUSERSITE=1
    export PYTHONPATH PYTHONNOUSERSITE
    exec "$python" "$@"
  fi
done
found=$(python3 -c 'import sys, sysconfig; print(sys.version.split()[0], "on", sysconfig.get_platform())' 2>/dev/null)
echo "headrace: this environment needs CPython @VERSION@ on @PLATFORM@, but $(hostname) has ${found:-no python3}: \
install python@VERSION@ there, set HEADRACE_PYTHON to its path, or pack with the Python of the cluster" >&2
exit 1
