
-- Calls a function for one request of many. What it runs into is the answer to that one, and names the script, as an
-- error does that ends a script.
local function guarded(run, ...)
  local done, answer = pcall(run, ...)
  if done then return answer end
  local told = type(answer) == 'table' and answer.err or answer
  if not string.find(told, '@user_script', 1, true) then told = told .. ' script: one of many, on @user_script' end
  return {err = told}
end
