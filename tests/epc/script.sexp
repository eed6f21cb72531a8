;; What both EPC clients, epc.el and python-epc, call and what they must be answered.
;; Each form is (METHOD ARGUMENTS EXPECTED); expected is (is VALUE), (has TEXT) in what is printed,
;; or (error TEXT). In a string, $DIR is a folder with a file a.txt, $LARGE a text of 1 MB.
(ping nil (is :pong))
(add-context (:content "(+ 1 2)" :type :code) (has "ctx-1"))
(add-context ((:manager "m" :content "tab	 \"quoted\" back\\slash
λ😀é" :type :text)) (has "λ😀é"))
(get-context (:manager "m") (has "λ😀é"))
(add-context (:manager "large" :content "$LARGE") (has "ctx-3"))
(get-context (:manager "large") (has "$LARGE"))
(context-to-string (:manager "large") (has "$LARGE"))
(add-file (:path "$DIR/a.txt") (has "one"))
(add-file (:path "$DIR/none.txt") (error "none.txt"))
(add-tree (:path "$DIR" :manager "t" :mode :listing) (has ":files 1"))
(update-context (:id "ctx-1" :content "(+ 3 4)") (has "(+ 3 4)"))
(move-context (:id "ctx-1" :to 0) (has "ctx-1"))
(pin-context (:id "ctx-1") (has "ctx-1"))
(update-items (:items ((:id "ctx-1" :content "x"))) (has "ctx-1"))
(freeze-items (:id "ctx-1") (has "ctx-1"))
(undo nil (has "freeze-items"))
(get-context (:limit -1) (error "0 or more"))
(context-to-string (:types (:code)) (is "## Context

### Code
```lisp
(+ 3 4)
```

"))
(render-context (:max-tokens 100) (has ":text"))
(search-items (:query "one") (has "ctx-4"))
(read-file (:path "a.txt" :root "$DIR" :start-line 2) (has "two"))
(read-file (:path "../x" :root "$DIR") (error "leads out"))
(context-summary nil (has "2 items: Code, File"))
(refresh-context nil (has "ctx-4"))
(list-managers nil (has "large"))
(configure-manager (:manager "m" :max-items 3) (has ":max-items 3"))
(save-set (:name "s" :manager "m") (has "s"))
(list-sets nil (has "s"))
(load-set (:name "s" :manager "n") (has ":ids"))
(drop-set (:name "s") (has "s"))
(undo (:manager "n") (has "load-set"))
(next-changes (:manager "n") (has ":next-redo"))
(redo (:manager "n") (has ":redone"))
(remove-context (:id "ctx-1") (has ":removed"))
(clear-context nil (has ":removed"))
(drop-manager (:manager "t") (has ":removed 1"))
(transfer-items (:id "ctx-2" :manager "m" :into "other") (has "ctx-2"))
(open-layers (:directory "$DIR") (has "folder:"))
(add-context (:content 7) (error "must be a string"))
(add-context (:content "x" :colour "red") (error "colour"))
(no-such-method nil (error "no method"))
(ping (1 2) (error "property list"))
