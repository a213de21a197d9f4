//! What every process needs: clock, logs, metrics, admin server, shutdown.
