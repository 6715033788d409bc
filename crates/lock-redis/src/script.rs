//! What Redis runs: one script for each verb, atomic by nature.
//!
//! Rules of all scripts: every key is declared; the type of the lock's key is checked before anything is written; the
//! token is drawn before the lock is set, since nothing is rolled back; expiries go with the same `SET`; numbers are
//! written with `%.0f`, which is exact below 2^53; a release begins with a `DEL`, which runs in a full server too and
//! lets what follows run.

use std::sync::LazyLock;

use redis::Script;

/// Asks for a lease.
///
/// Keys: lock, counter, tombstone. Arguments: `lh1:OWNER:`, ttl (ms), width, floor, note, `stored` or `clock`.
/// Answers `{"granted", value, ttl}` or `{"held", value, PTTL}`.
pub(crate) static ACQUIRE: LazyLock<Script> = LazyLock::new(|| Script::new(ACQUIRE_TEXT));

/// Renews leases. Keys: locks. Arguments, two for each: `lh1:OWNER:LOW:HIGH:`, ttl (ms). Answers 1 or 0 for each.
pub(crate) static RENEW: LazyLock<Script> = LazyLock::new(|| Script::new(RENEW_TEXT));

/// Gives up a hold. Keys: lock, tombstone. Arguments: `lh1:OWNER:`, life of the tombstone (ms; 0 for none).
/// Answers 1 or 0.
pub(crate) static RELEASE: LazyLock<Script> = LazyLock::new(|| Script::new(RELEASE_TEXT));

/// Looks at locks. Keys: locks. Answers two for each: the value (nil for none, 0 for another type) and PTTL.
pub(crate) static LOOK: LazyLock<Script> = LazyLock::new(|| Script::new(LOOK_TEXT));

/// Ends the lease that spans a token. Keys: lock. Arguments: token. Answers 1 or 0.
pub(crate) static REVOKE: LazyLock<Script> = LazyLock::new(|| Script::new(REVOKE_TEXT));

/// Verifies the counter against the server's identity. Keys: counter, marker. Arguments: the server's `run_id`.
/// Answers 1 where the server is not the one that was last verified.
pub(crate) static VERIFY: LazyLock<Script> = LazyLock::new(|| Script::new(VERIFY_TEXT));

/// The scripts' texts, for loading them all when a connection is opened.
pub(crate) const TEXTS: [&str; 6] = [ACQUIRE_TEXT, RENEW_TEXT, RELEASE_TEXT, LOOK_TEXT, REVOKE_TEXT, VERIFY_TEXT];

const ACQUIRE_TEXT: &str = r"
local lock, counter, tombstone = KEYS[1], KEYS[2], KEYS[3]
local mine, ttl, width, floor = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local held = redis.pcall('GET', lock)
if type(held) == 'table' then return held end
if redis.call('EXISTS', tombstone) == 1 then return redis.error_reply('GIVENUP this claim was given up') end
if held then
  if string.sub(held, 1, #mine) ~= mine then
    return {'held', string.sub(held, 1, 600), redis.call('PTTL', lock)}
  end
  redis.call('PEXPIRE', lock, ttl)
  return {'granted', held, tonumber(ttl)}
end
local high = redis.call('INCRBY', counter, width)
if high <= width or high - width < floor or ARGV[6] == 'clock' then
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  -- A floor far ahead of the clock is no token of this deployment's and must not use up the numbers.
  high = math.max(high - width, now, math.min(floor, now + 86400000000)) + width
  redis.call('SET', counter, string.format('%.0f', high))
end
if high > 9007199254740991 then return redis.error_reply('SPENT the fencing tokens are used up') end
held = mine .. string.format('%.0f:%.0f:', high - width + 1, high) .. ARGV[5]
redis.call('SET', lock, held, 'PX', ttl)
return {'granted', held, tonumber(ttl)}
";

const RENEW_TEXT: &str = r"
local answers = {}
for i, lock in ipairs(KEYS) do
  local held, mine = redis.pcall('GET', lock), ARGV[2 * i - 1]
  if type(held) == 'string' and string.sub(held, 1, #mine) == mine then
    answers[i] = redis.call('PEXPIRE', lock, ARGV[2 * i])
  else
    answers[i] = 0
  end
end
return answers
";

const RELEASE_TEXT: &str = r"
local lock, tombstone, mine = KEYS[1], KEYS[2], ARGV[1]
local held, released = redis.pcall('GET', lock), 0
if type(held) == 'string' and string.sub(held, 1, #mine) == mine then released = redis.call('DEL', lock) end
if ARGV[2] ~= '0' then
  redis.call('DEL', tombstone)
  redis.call('SET', tombstone, '', 'PX', ARGV[2])
end
return released
";

const LOOK_TEXT: &str = r"
local seen = {}
for i, lock in ipairs(KEYS) do
  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then held = 0 elseif held then held = string.sub(held, 1, 600) end
  seen[2 * i - 1], seen[2 * i] = held, redis.call('PTTL', lock)
end
return seen
";

const REVOKE_TEXT: &str = r"
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
local low, high = string.match(held or '', '^lh1:%x+:(%d+):(%d+):')
local token = tonumber(ARGV[1])
if low and tonumber(low) <= token and token <= tonumber(high) then return redis.call('DEL', KEYS[1]) end
return 0
";

const VERIFY_TEXT: &str = r"
local counter, marker = KEYS[1], KEYS[2]
if redis.call('GET', marker) == ARGV[1] then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if (tonumber(redis.call('GET', counter) or '') or 0) < now then
  redis.call('SET', counter, string.format('%.0f', now))
end
redis.call('SET', marker, ARGV[1])
return 1
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_is_loaded_with_each_connection() {
        for (script, text) in [&ACQUIRE, &RENEW, &RELEASE, &LOOK, &REVOKE, &VERIFY].into_iter().zip(TEXTS) {
            assert_eq!(script.get_hash(), Script::new(text).get_hash());
        }
    }
}
