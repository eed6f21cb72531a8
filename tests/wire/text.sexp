; Text that is hard to carry: escapes, line ends, other scripts, and data in the metadata.
> (:id 1 :method add-context :params (:content "tab\t quote\" back\\slash return\r null\0 bell\a λ😀 ls\u2028" :type :text))
< (:id 1 :result (:id "ctx-1" :type :text :content "tab\t quote\" back\\slash return\r null\000 bell\007 λ😀 ls " :metadata nil :timestamp 1700000000 :tokens 13 :token-counter :estimate :bytes 55 :pinned nil :live nil :state :fresh :manager "*shared*" :count 1 :total-tokens 13 :version 3))
> (:id 2 :method add-context :params (:content "x" :metadata (:my-key (1 -2 2.5 "s" nil t sym :kw [1 (:deep (:er 1))]) :big 123456789012345678901234567890)))
< (:id 2 :result (:id "ctx-2" :type :code :content "x" :metadata (:my-key (1 -2 2.5 "s" nil t sym :kw [1 (:deep (:er 1))]) :big 123456789012345678901234567890) :timestamp 1700000000 :tokens 1 :token-counter :estimate :bytes 1 :pinned nil :live nil :state :fresh :manager "*shared*" :count 2 :total-tokens 14 :version 5))
> (:id 3 :method context-to-string :params (:limit 1 :format :json))
< (:id 3 :result "{\"items\":[{\"id\":\"ctx-2\",\"type\":\"code\",\"content\":\"x\",\"language\":\"lisp\"}]}")
> (:id 4 :method context-to-string :params (:types (:text)))
< (:id 4 :result "## Context\n\n### Text\n```text\ntab\t quote\" back\\slash return\r null\000 bell\007 λ😀 ls \n```\n\n")
