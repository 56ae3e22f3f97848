-- Tables, strings and closures built and dropped, so that the collector calls free as often as the program calls malloc.
local function tree(depth)
  if depth == 0 then return {} end
  return { tree(depth - 1), tree(depth - 1) }
end

local function count(t)
  return t[1] and 1 + count(t[1]) + count(t[2]) or 1
end

local total = 0
for _ = 1, 20 do total = total + count(tree(14)) end

local seed, words = 7, {}
for i = 1, 300000 do
  seed = (seed * 1103515245 + 12345) % 2147483648
  local key = "word-" .. seed % 20000
  words[key] = (words[key] or "") .. string.char(97 + i % 26)
  if #words[key] > 60 then words[key] = nil end
end
local keys = {}
for key, text in pairs(words) do keys[#keys + 1] = key .. text:upper():rep(2) end
table.sort(keys)
print(total, #keys, keys[1], keys[#keys])
