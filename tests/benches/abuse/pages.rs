//! Attacks on the pages of a program.

use super::attacker::Attacker;
use super::heads;

/// Strangers that wait for the drain of a pod, each again as soon as it was answered.
pub(crate) fn waits_for_the_drain(attacker: &Attacker) {
    heads::on_each_connection_once(attacker, b"GET /wait-for-drain HTTP/1.1\r\nHost: localhost\r\n\r\n");
}
