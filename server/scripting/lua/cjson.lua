-- JSON for scripts, with the results and the error texts of lua-cjson 2.1, which Redis has.
--
-- It is made to be fast: what is common is tried first and in place, with few calls, and what is
-- rare is found out when that has failed.

local new_encoder, new_decoder, settings = ...

local pairs = pairs

local function new()
  local cjson = { null = settings.null, _NAME = "cjson", _VERSION = "2.1.0" }
  for name, value in pairs(new_encoder()) do
    cjson[name] = value
  end
  for name, value in pairs(new_decoder()) do
    cjson[name] = value
  end
  cjson.new = new
  return cjson
end

return new()
