
-- Calls a function for one request of many. An error becomes the answer to that request, and names the script, like an
-- error that ends a script.
local function guarded(run, ...)
  local done, answer = pcall(run, ...)
  if done then return answer end
  local told = type(answer) == 'table' and answer.err or answer
  if not string.find(told, '@user_script', 1, true) then told = told .. ' script: one of many, on @user_script' end
  return {err = told}
end
