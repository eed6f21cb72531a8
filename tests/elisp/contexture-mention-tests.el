;;; contexture-mention-tests.el --- Tests of what follows an @  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Where completion begins, what it offers, what accepting does, how
;; mentions are read, and that nothing of it waits or stays behind.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-mention)

(defvar text-mode-ispell-word-completion)

(defmacro contexture-mention-tests--in-project (&rest body)
  "Run BODY with a server, in a Text mode buffer of a small project."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (dolist (name '("src/main.rs" "src/lib.rs" "my file.txt" "docs/main.texi"
                     ".hidden" "old.txt~" "#new.txt#"))
       (make-directory (or (file-name-directory name) ".") t)
       (contexture-test-file name "one" "two" "three"))
     (contexture-mention-tests--git "init" "-q")
     (unwind-protect
         (contexture-test-visiting (contexture-test-file "question.txt")
           (let (text-mode-ispell-word-completion) ; needs a list of words
             (text-mode))
           (contexture-mention-mode)
           (erase-buffer)
           (contexture-mention-tests--listed)
           (let ((contexture-mention--patience 10)) ; the machine may be busy
             ,@body))
       (contexture-files--forget)
       (clrhash contexture-mention--items))))

(defun contexture-mention-tests--git (&rest args)
  "Run Git with ARGS."
  (should (eql 0 (apply #'call-process "git" nil nil nil args))))

(defun contexture-mention-tests--listed ()
  "Wait until the files of this buffer's project are known."
  (let ((list (contexture-files--of (contexture-mention--root)
                                    (not (contexture--project-root)))))
    (llm-ert-wait-for (contexture-files--list-done list))
    list))

(defun contexture-mention-tests--offered (text)
  "Insert TEXT and return what is offered at its end, best first."
  (insert text)
  (let ((capf (contexture-mention-at-point)))
    (should capf)
    (pcase-let* ((`(,start ,end ,table . ,_) capf)
                 (input (buffer-substring-no-properties start end))
                 (metadata (completion-metadata input table nil))
                 (all (completion-all-completions input table nil (length input)
                                                  metadata)))
      (when (consp all)
        (setcdr (last all) nil)
        (mapcar #'substring-no-properties
                (funcall (completion-metadata-get metadata 'display-sort-function)
                         all))))))

(defun contexture-mention-tests--complete (text)
  "Insert TEXT and complete it as the user does; return the line."
  (insert text)
  (completion-at-point)
  (buffer-substring-no-properties (line-beginning-position) (line-end-position)))

;;;; Where

(ert-deftest contexture-mention-begins-words-only ()
  (pcase-dolist (`(,text ,name)
                 '(("@" "") ("@ma" "ma") ("see @src/ma" "src/ma") ("(@x" "x")
                   ("`@x" "x") ("\"@x" "x") ("@\"my fi" "\"my fi")
                   ("@a/@types/b" "a/@types/b") ("@foo->bar" "foo->bar")
                   ("me@home" nil) ("a.b@c.de" nil) ("@x y" nil) ("x" nil)
                   (",@x" nil) ("\\@x" nil) ("@x," nil) ("@\"x\" y" nil)))
    (with-temp-buffer
      (insert text)
      (let ((bounds (contexture-mention--bounds)))
        (should (equal (list text (and bounds
                                       (buffer-substring (car bounds) (cdr bounds))))
                       (list text name)))))))

(ert-deftest contexture-mention-begins-behind-a-prompt ()
  (with-temp-buffer
    (insert (propertize "talk> " 'field 'prompt 'rear-nonsticky t) "@ma")
    (should (contexture-mention--bounds))))

(ert-deftest contexture-mention-reaches-to-the-end-of-the-name ()
  (pcase-dolist (`(,before ,after ,name)
                 '(("@src/ma" "in.rs." "src/main.rs") ("@\"my" "\" x" "\"my\"")
                   ("(@ma" ") x" "ma") ("@ma" " x" "ma") ("@ma" "...?" "ma")))
    (with-temp-buffer
      (insert before)
      (save-excursion (insert after))
      (let ((bounds (contexture-mention--bounds)))
        (should (equal (buffer-substring (car bounds) (cdr bounds)) name))))))

(ert-deftest contexture-mention-is-in-comments-and-strings-of-programs-only ()
  (with-temp-buffer
    (emacs-lisp-mode)
    (insert "@x")
    (should-not (contexture-mention--bounds))
    (insert " ;; @x")
    (should (contexture-mention--bounds))
    (insert "\n\"@x")
    (should (contexture-mention--bounds))))

(ert-deftest contexture-mention-keys-are-those-of-others-elsewhere ()
  (with-temp-buffer
    (text-mode)
    (contexture-mention-mode)
    (insert "x")
    (should-not (eq (key-binding (kbd "TAB")) 'completion-at-point))
    (insert " @x")
    (should (eq (key-binding (kbd "TAB")) 'completion-at-point))
    (should (eq (key-binding (kbd "M-TAB")) 'completion-at-point))
    (contexture-mention-mode -1)
    (should-not (eq (key-binding (kbd "TAB")) 'completion-at-point))))

;;;; What

(ert-deftest contexture-mention-offers-files-of-the-project ()
  (contexture-mention-tests--in-project
    (should (equal (sort (contexture-mention-tests--offered "@") #'string<)
                   '("\"my file.txt\"" ".hidden" "docs/main.texi" "question.txt"
                     "src/lib.rs" "src/main.rs")))))

(ert-deftest contexture-mention-finds-names-below-folders-and-in-quotes ()
  (contexture-mention-tests--in-project
    (should (equal (contexture-mention-tests--offered "@main")
                   '("src/main.rs" "docs/main.texi")))
    (should (equal (contexture-mention-tests--offered " @src/") '("src/lib.rs" "src/main.rs")))
    (should (equal (contexture-mention-tests--offered " @my") '("\"my file.txt\"")))
    (should (equal (contexture-mention-tests--offered " @\"my f") '("\"my file.txt\"")))
    (should-not (contexture-mention-tests--offered " @nothing"))))

(ert-deftest contexture-mention-shows-the-best-first-and-not-too-many ()
  (let* ((session (contexture-mention--make-completion
                   :buffer (current-buffer) :start (point)
                   :items (make-hash-table :test #'equal)))
         (names '("zz/long/app.el" "app.el" "z/app.el" "my-app/other.el" "x-app"))
         (contexture-mention-limit 4))
    (cl-letf (((symbol-function 'contexture-mention--input) (lambda (_) "app")))
      (should (equal (contexture-mention--best session names)
                     '("app.el" "z/app.el" "zz/long/app.el" "x-app"))))))

(ert-deftest contexture-mention-offers-items-with-their-tokens ()
  (contexture-mention-tests--in-project
    (contexture-request 'add-file (list :manager "question.txt" :start-line 2 :end-line 3
                                        :path (expand-file-name "src/main.rs")))
    (contexture-request 'add-file (list :manager "question.txt"
                                        :path (expand-file-name "src/lib.rs")))
    (contexture-request 'add-context '( :manager "question.txt" :content "text"
                                        :metadata (:origin :kill)))
    (should (equal (contexture-mention-tests--offered "@")
                   '("ctx-3" "src/lib.rs" "src/main.rs:2-3"
                     ".hidden" "src/main.rs" "question.txt" "\"my file.txt\""
                     "docs/main.texi")))
    (let* ((capf (contexture-mention-at-point))
           (affixate (plist-get (nthcdr 3 capf) :affixation-function))
           (kind (plist-get (nthcdr 3 capf) :company-kind)))
      (should (equal (mapcar (lambda (row) (mapcar #'substring-no-properties row))
                             (funcall affixate '("ctx-3" "src/main.rs:2-3" "src/main.rs")))
                     '(("ctx-3" "" "            in context: killed text, 1 token")
                       ("src/main.rs:2-3" "" "  in context, 4 tokens")
                       ("src/main.rs" "" ""))))
      (should (eq (funcall kind "ctx-3") 'reference))
      (should (eq (funcall kind "src/main.rs") 'file)))))

(ert-deftest contexture-mention-starts-no-server ()
  (contexture-mention-tests--in-project
    (contexture-mention-tests--offered "@main")
    (should-not contexture--connection)))

(ert-deftest contexture-mention-offers-symbols ()
  (with-temp-buffer
    (emacs-lisp-mode)
    (setq default-directory "/")
    (insert "(defun contexture-mention-tests-local () 1)\n;; ")
    (cl-letf (((symbol-function 'contexture-files--of) #'ignore))
      (should (equal (contexture-mention-tests--offered "@")
                     '("contexture-mention-tests-local")))
      (should (member "contexture-mention-at-point"
                      (contexture-mention-tests--offered "contexture-men")))
      (let ((capf (contexture-mention-at-point)))
        (should (equal (funcall (plist-get (nthcdr 3 capf) :annotation-function)
                                (propertize "x" 'contexture-symbol t))
                       " symbol"))))))

(ert-deftest contexture-mention-offers-symbols-of-open-files-of-the-project ()
  (contexture-mention-tests--in-project
    (contexture-test-visiting (contexture-test-file "src/sum.rs" "" "fn total() {" "}")
      (should (eq major-mode 'fundamental-mode)))
    (contexture-test-visiting (contexture-test-file "notes.md" "    fn totals() {" "    }"))
    (contexture-test-visiting (contexture-test-file "src/sum.py" "def total_py():" "    pass"))
    (should (equal (contexture-mention-tests--offered "@tota") '("total" "total_py")))
    (contexture-test-message "^Added total_py (src/sum\\.py:1-2) to"
      (should (equal (contexture-mention-tests--complete "l_") "@total_py")))))

(ert-deftest contexture-mention-offers-items-by-their-names ()
  (contexture-mention-tests--in-project
    (contexture-test-visiting (contexture-test-file "src/sum.rs" "" "fn total() {" "}"))
    (contexture-test-message "^Added" (contexture-add-symbol "total"))
    (kill-buffer "sum.rs")
    (let ((manager (contexture-adding-context)))
      (with-current-buffer (get-buffer-create "a pad")
        (insert "one")
        (let ((contexture-context manager))
          (contexture-test-message "^Added a pad" (contexture-add-buffer)))
        (kill-buffer)))
    (contexture-mention-tests--offered "@")
    (should (equal (contexture-mention-tests--offered " @tot") '("total")))
    (should (equal (contexture-mention-tests--offered " @sum") '("src/sum.rs:2-3")))
    (should (equal (contexture-mention-tests--offered " @pad") '("\"a pad\"")))
    (contexture-mention-tests--complete " @tota")
    (contexture-test-settle)
    (should (= (length (contexture-test-items)) 2))))

(ert-deftest contexture-mention-says-that-nothing-matches ()
  (contexture-mention-tests--in-project
    (contexture-test-message "^No file, symbol or item matches @\"nix y"
      (let ((this-command 'completion-at-point))
        (contexture-mention-tests--complete "see @\"nix y")))))

;;;; Accepting

(ert-deftest contexture-mention-does-without-definitions ()
  (contexture-mention-tests--in-project
    (lisp-mode)
    (contexture-mention-mode)
    (let ((this-command 'completion-at-point))
      (should (equal (contexture-mention-tests--offered ";; @lib.") '("src/lib.rs"))))))

(ert-deftest contexture-mention-adds-the-file-that-is-accepted-once ()
  (contexture-mention-tests--in-project
    (contexture-test-message "^Added src/main\\.rs to buffer question\\.txt"
      (should (equal (contexture-mention-tests--complete "see @main.r")
                     "see @src/main.rs")))
    (let ((minibuffer-message-timeout 0))
      (completion-at-point)
      (completion-at-point))
    (contexture-test-settle)
    (should (equal (contexture-test-metadata (contexture-test-only-item) :filename)
                   (list (expand-file-name "src/main.rs"))))))

(ert-deftest contexture-mention-adds-a-file-with-blanks-in-its-name ()
  (contexture-mention-tests--in-project
    (contexture-test-message "^Added my file\\.txt"
      (should (equal (contexture-mention-tests--complete "@my f")
                     "@my f"))          ; that is another word
      (should (equal (contexture-mention-tests--complete " @\"my")
                     "@my f @\"my file.txt\"")))))

(ert-deftest contexture-mention-only-inserts-if-wanted ()
  (contexture-mention-tests--in-project
    (let ((contexture-mention-action 'insert))
      (should (equal (contexture-mention-tests--complete "@main.r") "@src/main.rs"))
      (should-not contexture--connection))))

(ert-deftest contexture-mention-adds-the-definition-of-a-symbol ()
  (contexture-test-with-server
    (contexture-test-visiting
        (contexture-test-file "a.el" "(defun contexture-mention-tests-mine ()" "  1)" ";; ")
      (contexture-mention-mode)
      (goto-char (1- (point-max)))
      (cl-letf (((symbol-function 'contexture-files--of) #'ignore))
        (contexture-test-message "^Added .*a\\.el:1-2) to"
          (contexture-mention-tests--complete "@contexture-mention-tests-mi")))
      (should (equal (contexture-test-metadata (contexture-test-only-item) :symbol)
                     '("contexture-mention-tests-mine"))))))

(ert-deftest contexture-mention-leaves-no-match-to-others ()
  (contexture-mention-tests--in-project
    (add-hook 'completion-at-point-functions
              (lambda () (list (- (point) 3) (point) '("nix-da"))) 90 t)
    (should (equal (contexture-mention-tests--complete "@nix") "@nix-da"))))

;;;; Reading

(ert-deftest contexture-mention-in-string-tells-what-is-meant ()
  (contexture-mention-tests--in-project
    (pcase-dolist
        (`(,text . ,expected)
         '(("no mention, me@home.de" . nil)
           ("see @src/main.rs." (4 16 file "src/main.rs"))
           ("@src/main.rs:2" (0 14 file "src/main.rs" 2 2))
           ("(@src/main.rs:2-3)" (1 17 file "src/main.rs" 2 3))
           ("@\"my file.txt\":" (0 14 file "my file.txt"))
           ("@\"my file.txt:5\"" (0 16 file "my file.txt" 5 5))
           ("@\"not there\"" (0 12 file "not there"))
           ("@src/, @src" (0 5 directory "src/") (7 11 directory "src/"))
           ("@ctx-12!" (0 7 item "ctx-12"))
           ("@foo->bar\n@car" (0 9 symbol "foo->bar") (10 14 symbol "car"))
           ("@ @? @" . nil)))
      (should (equal (list text (contexture-mention-in-string text))
                     (list text
                           (mapcar (pcase-lambda (`(,start ,end ,kind ,target . ,lines))
                                     `(,start ,end ,kind
                                              ,(if (memq kind '(file directory))
                                                   (expand-file-name target)
                                                 target)
                                              ,@lines))
                                   expected)))))
    (should (equal (contexture-mention-in-string "@main.rs" "src")
                   `((0 8 file ,(expand-file-name "src/main.rs")))))))

;; What a text means becomes known in slices.
(defun contexture-mention-tests--meanings (text items)
  "Return what the mentions in TEXT mean, when ITEMS are there."
  (let ((sought (contexture-mention--begin-meanings text items)))
    (while (not (contexture-mention--look-up sought))
      (accept-process-output nil 0.02))
    (contexture-mention--meanings sought)))

(defun contexture-mention-tests--said (text &optional items)
  "Return what is said when TEXT is sent, and ITEMS are there."
  (apply #'contexture-mention--remarks
         (cdr (contexture-mention-tests--meanings text items))))

(ert-deftest contexture-mention-in-string-takes-the-longest-name-of-a-file ()
  (contexture-mention-tests--in-project
    (let ((files '("app/(group)/[slug]/page.tsx" "it's.md" "a,b.md" "src/c++/x.cc" "R&D/plan.md"
                   "\u65e5\u672c/\u30e1\u30e2.md" "deep/er/f(1).txt" "v1.2")))
      (dolist (name files)
        (make-directory (or (file-name-directory name) ".") t)
        (contexture-test-file name "one" "two"))
      (dolist (name (cons "my file.txt" files))
        (pcase-dolist (`(,before . ,after)
                       '(("see @" . " please") ("(@" . ")") ("**@" . "**") ("\uff08@" . "\uff09")
                         ("\u300c@" . "\u300d\u3002") ("\u8bf7\u770b@" . "\u3002") ("@" . ".")
                         ("@" . "\u3092\u8aac\u660e\u3057\u3066") ("x: @" . "!") ("\u201c@" . "\u201d")
                         ("`@" . "`") ("- @" . "\nmore")))
          (pcase (contexture-mention-in-string (concat before name after))
            (`((,start ,end file ,file))
             (should (equal (list (length before) (+ (length before) (length name))
                                  (expand-file-name name))
                            (list (1+ start) end file))))
            (other (ert-fail (list before name after other))))))
      (dolist (lines '(":2" ":1-2" "#L2" "#L1-L2"))
        (should (equal '(2 "it's.md")
                       (pcase (contexture-mention-in-string (format "@it's.md%s, ok" lines))
                         (`((,_ ,_ file ,file ,_ ,last))
                          (list last (file-name-nondirectory file)))))))
      (should (equal '(1 2) (nthcdr 4 (car (contexture-mention-in-string
                                            "@\"my file.txt\":1-2")))))
      ;; What is no whole name is none.
      (dolist (text '("@srcs" "me@my file.txt" "@src.rs" "a,@src"))
        (should-not (cl-find-if (lambda (it) (memq (nth 2 it) '(file directory)))
                                (contexture-mention-in-string text)))))))

(ert-deftest contexture-mention-offers-files-of-submodules-and-linked-folders ()
  (contexture-mention-tests--in-project
    (let ((other (make-temp-file "contexture-linked" t))
          (git (lambda (folder &rest args)
                 (let ((default-directory (file-name-as-directory (expand-file-name folder))))
                   (apply #'contexture-mention-tests--git
                          "-c" "user.name=n" "-c" "user.email=a@b"
                          "-c" "protocol.file.allow=always" args)))))
      (unwind-protect
          (progn
            (write-region "x\n" nil (expand-file-name "linked.py" other) nil 'silent)
            (make-symbolic-link other (expand-file-name "lnk"))
            (make-directory "origin/lib" t)
            (contexture-test-file "origin/lib/inner.py" "i = 1")
            (funcall git "origin" "init" "-q")
            (funcall git "origin" "add" ".")
            (funcall git "origin" "commit" "-qm" "x")
            (funcall git "." "submodule" "--quiet" "add" "./origin" "sub")
            (contexture-test-file "a[b]c.txt" "x")
            (contexture-files--forget)
            (contexture-mention-tests--listed)
            (should (equal (contexture-mention-tests--offered "@inner") '("sub/lib/inner.py")))
            (erase-buffer)
            (should (equal (contexture-mention-tests--offered "@linked") '("lnk/linked.py")))
            (erase-buffer)
            (should (equal (contexture-mention-tests--offered "@a[b") '("a[b]c.txt")))
            (pcase (contexture-mention--meaning
                    (nthcdr 2 (car (contexture-mention-in-string "@lnk/linked.py"))) nil)
              (`(add-file . ,params)
               (should (string-suffix-p "lnk/linked.py" (plist-get params :path))))
              (other (ert-fail other))))
        (delete-directory other t)))))

(ert-deftest contexture-mention-completes-without-capitals ()
  (contexture-mention-tests--in-project
    (contexture-test-file "README.md" "# Read")
    (contexture-test-file "docs/Guide (Old).md" "# Guide")
    (contexture-files--forget)
    (contexture-mention-tests--listed)
    (pcase-dolist (`(,text . ,line) '(("@readme" . "@README.md") ("@README" . "@README.md")
                                      ("@docs/gui" . "@\"docs/Guide (Old).md\"")
                                      ("@rEADME" . "@rEADME")))
      (erase-buffer)
      (should (equal (contexture-mention-tests--complete text) line)))))

(ert-deftest contexture-mention-is-read-in-questions-of-the-minibuffer ()
  (contexture-mention-tests--in-project
    (let (mode)
      (cl-letf (((symbol-function 'read-string)
                 (lambda (&rest _)
                   (with-temp-buffer
                     (run-hooks 'minibuffer-setup-hook)
                     (setq mode (list contexture-mention-mode
                                      contexture-mention--for-question))
                     "why @src/lib.rs?"))))
        (should (equal "why @src/lib.rs?"
                       (contexture-mention--ask "Ask: " 'contexture-question-history))))
      (should (equal mode '(t t)))
      (should-not contexture--connection)))) ; nothing was added

(ert-deftest contexture-mention-tells-once-what-matches-nothing ()
  (contexture-mention-tests--in-project
    (should-not (contexture-mention-tests--said "Is @ctx-99 stale, me@nowhere.de?"))
    (should (equal (contexture-mention-tests--said
                    "What do @no-such-name and @\"not there\" do, @no-such-name?")
                   (list (concat "no file and no symbol known here matches @no-such-name "
                                 "or @\"not there\"; they are only text"))))
    (should-not (contexture-mention-tests--said "And @no-such-name again?"))
    (should (equal (contexture-mention-tests--said "Set @gamma.")
                   '("no file and no symbol known here matches @gamma; it is only text")))
    (should (equal (contexture-mention-tests--said "Set @delta, @eta and @iota.")
                   (list (concat "no file and no symbol known here matches "
                                 "@delta, @eta or @iota; they are only text"))))
    (should (contexture-mention-tests--said "see @/api:v1:/x please"))))

(ert-deftest contexture-mention-tells-what-it-does-not-add ()
  (contexture-mention-tests--in-project
    (contexture-test-file "tests/lib.rs" "fn twice() {" "}")
    (contexture-test-file "tests/main.rs" "fn twice() {" "}")
    (contexture-files--forget)
    (contexture-test-visiting (contexture-test-file "tests/lib.rs" "fn twice() {" "}"))
    (contexture-test-visiting (contexture-test-file "tests/main.rs" "fn twice() {" "}"))
    (pcase-dolist (`(,text . ,said)
                   '(("@lib.rs?" . "@lib.rs may be src/lib.rs or tests/lib.rs, so it is only text")
                     ("@twice" . "@twice may be tests/lib.rs:1 or tests/main.rs:1, so it is only text")
                     ("@src" . "@src is a folder; /add adds its files")
                     ("@src/" . "@src/ is a folder; /add adds its files")
                     ("@\"/ssh:nowhere:~/x\"" . "@\"/ssh:nowhere:~/x\" is on another machine; \
M-x contexture-add-file adds it")
                     ("@/" . "@/ is a folder; /add adds its files")
                     ("@/etc/passwd" . "@/etc/passwd is outside of the project; /add adds it")))
      (should (equal (contexture-mention-tests--said text)
                     (list said))))
    (should-not contexture--connection)))

(ert-deftest contexture-mention-finds-files-in-letters-of-any-size ()
  (contexture-mention-tests--in-project
    (contexture-test-file "README.md" "one" "two")
    (contexture-test-file "Doc/Read Me.txt" "a")
    (contexture-test-file "doc/guide.md" "a")
    (contexture-test-file "Other/GUIDE.md" "a")
    (contexture-test-file "ÄRGER.txt" "a")
    (contexture-test-visiting (contexture-test-file "src/sum.rs" "fn readme() {" "}"))
    (contexture-files--forget)
    (pcase-dolist (`(,text . ,file)
                   '(("@readme.md" . "README.md") ("@ReadMe.MD:1-2" . "README.md") ("@README.md" . "README.md")
                     ("@SRC/Lib.rs" . "src/lib.rs") ("@Lib.rs" . "src/lib.rs")
                     ("@\"read ME.txt\"" . "Doc/Read Me.txt") ("@\"doc/read me.txt\"" . "Doc/Read Me.txt")
                     ("@guide.md" . "doc/guide.md") ("@ärger.txt" . "ÄRGER.txt")
                     ("@GUIDE.MD") ("@readmee.md") ("@../readme.md")))
      (let ((calls (car (contexture-mention-tests--meanings text nil))))
        (should (equal (list text (mapcar (lambda (call) (plist-get (cdr call) :path)) calls))
                       (list text (and file (list (expand-file-name file))))))))
    ;; A symbol comes first.
    (should (equal (plist-get (plist-get (cdaar (contexture-mention-tests--meanings "@readme" nil)) :metadata)
                              :symbol)
                   "readme"))))

(ert-deftest contexture-mention-reads-what-was-typed ()
  (contexture-mention-tests--in-project
    (contexture-test-visiting (contexture-test-file "src/sum.rs" "" "fn total() {" "}"))
    (contexture-files--forget)
    (pcase-let ((`(,calls ,unknown ,remarks)
                 (contexture-mention-tests--meanings
                  "Why @main.rs:2-3 and @src/lib.rs, @lib.rs, @total and @nix?" nil)))
      (should (equal (mapcar (lambda (call)
                               (list (car call)
                                     (or (plist-get (cdr call) :path)
                                         (plist-get (plist-get (cdr call) :metadata) :symbol))))
                             calls)
                     `((add-file ,(expand-file-name "src/main.rs"))
                       (add-file ,(expand-file-name "src/lib.rs"))
                       (add-item "total"))))
      (should (equal (list unknown remarks) '(("@nix") nil)))
      (contexture-request-batch
       (cl-loop for (method . params) in calls
                collect `(,method :manager ,(contexture-adding-context) ,@params))))
    (should-not (car (contexture-mention-tests--meanings "@src/main.rs:3 @lib.rs @total"
                                               (contexture-test-items))))
    (let ((contexture-mention-action 'insert))
      (should-not (car (contexture-mention-tests--meanings "@question.txt" nil))))))

(ert-deftest contexture-mention-asks-the-disk-little-for-many-mentions ()
  (contexture-test-in-directory
   (lambda ()
     (contexture-test-file "here/a b.txt")
     (dolist (unit (list "@gone/x y @other z " "@other " "@here/a @here/a c " "@./here/a c "
                         "@here/../here/./a c d e f g " "@~/x y z " "@/tmp/a b c d e f "
                         (concat "@" (make-string 199 ?a) " ") "@a:1 " "@\"gone/x y\" "))
       (let ((text (concat (apply #'concat (make-list 60 unit)) "@here/a b.txt"))
             (asked 0))
         (cl-letf* ((look (symbol-function 'contexture--outside-file))
                    ((symbol-function 'contexture--outside-file)
                     (lambda (&rest arguments) (cl-incf asked) (apply look arguments))))
           (should (equal (nth 3 (car (last (contexture-mention-in-string
                                             text default-directory))))
                          (expand-file-name "here/a b.txt")))
           (unless (string-prefix-p "@\"" unit)
             (should (< asked 50)))
           ;; Of a text with very many, only the first count.
           (should (= contexture-mention--most
                      (length (contexture-mention-in-string
                               (apply #'concat (make-list 2000 unit)) default-directory))))
           (should (< asked (* 3 contexture-mention--most-looks)))))))))

(ert-deftest contexture-mention-holds-emacs-for-a-moment-at-most ()
  (contexture-mention-tests--in-project
    (dotimes (number 100)
      (contexture-test-file (format "folder-%d/file name %d.txt" number number)))
    (contexture-files--forget)
    (let* ((list (progn (contexture-mention--files)))
           (sought (contexture-mention--begin-meanings
                   (cl-loop for number below 300
                            concat (format "@folder-%d/file name %d.txt @nothing%d "
                                           (mod number 100) (mod number 100) number))
                   nil))
           (contexture-mention--most-seconds 60) (pauses 0))
      (contexture-files--wait list)
      ;; A home folder has as many.
      (setf (contexture-files--list-names list)
            (append (contexture-files--list-names list)
                    (cl-loop for number below 4000 collect (format "some/where/file-%d.c" number))))
      (while (not (contexture-test-at-once (contexture-mention--look-up sought)))
        (cl-incf pauses))
      (should (> pauses 0))
      (pcase-let ((`(,calls ,unknown ,remarks) (contexture-mention--meanings sought)))
        (should (< 50 (length calls)))
        (should (< 50 (length unknown)))
        (should (equal '("only the first 200 mentions count") remarks))))))

(ert-deftest contexture-mention-waits-for-the-list-of-files-without-holding-emacs ()
  (contexture-mention-tests--in-project
    (contexture-files--forget)
    (let ((sought (contexture-mention--begin-meanings "@src/main.rs and @lib.rs" nil)) (tries 0))
      (should-not (contexture-test-at-once (contexture-mention--look-up sought)))
      (while (not (contexture-test-at-once (contexture-mention--look-up sought)))
        (should (< (cl-incf tries) 200))
        (accept-process-output nil 0.02))
      (should (equal '(add-file add-file) (mapcar #'car (car (contexture-mention--meanings sought))))))))

(ert-deftest contexture-mention-looks-at-no-other-machine ()
  (cl-letf* ((refusing (lambda (look)
                         ;; Emacs itself looks at files here when it compiles.
                         (lambda (file)
                           (should-not (file-remote-p file))
                           (funcall look file))))
             ((symbol-function 'file-exists-p)
              (funcall refusing (symbol-function 'file-exists-p)))
             ((symbol-function 'file-directory-p)
              (funcall refusing (symbol-function 'file-directory-p))))
    (should (equal (contexture-mention-in-string "@a.rs" "/ssh:host:/")
                   '((0 5 symbol "a.rs"))))
    (should-not (contexture-files--of "/ssh:host:/" nil))))

;;;; Lists of files

(ert-deftest contexture-files-does-not-list-what-is-ignored ()
  (contexture-mention-tests--in-project
    (contexture-test-file ".gitignore" "docs/")
    (contexture-files--forget)
    (should-not (contexture-mention-tests--offered "@texi"))))

(ert-deftest contexture-files-lists-a-project-that-git-cannot ()
  "A folder that only looks like a work tree is listed by find."
  (contexture-test-with-server
    (make-directory ".git")
    (make-directory "a")
    (contexture-test-file "a/b.txt")
    (unwind-protect
        (with-temp-buffer
          (should (equal (contexture-files--list-names
                          (contexture-mention-tests--listed))
                         '("a/b.txt"))))
      (contexture-files--forget))))

(ert-deftest contexture-files-lists-one-level-outside-of-projects ()
  (contexture-test-with-server
    (make-directory "a")
    (contexture-test-file "a/b.txt")
    (contexture-test-file "c.txt")
    (unwind-protect
        (with-temp-buffer
          (should (equal (contexture-files--list-names
                          (contexture-mention-tests--listed))
                         '("c.txt"))))
      (contexture-files--forget))))

(ert-deftest contexture-files-finds-new-files-and-keeps-the-old-list-meanwhile ()
  (contexture-mention-tests--in-project
    (contexture-test-file "src/new.rs")
    (let* ((contexture-files--fresh -1)
           (list (contexture-files--of (contexture-mention--root) nil)))
      (should (contexture-files--list-process list))
      (should (member "src/main.rs" (contexture-files--list-names list)))
      (should-not (member "src/new.rs" (contexture-files--list-names list)))
      (llm-ert-wait-for (member "src/new.rs" (contexture-files--list-names list))))))

(ert-deftest contexture-files-gives-what-is-there-so-far ()
  (let ((list (contexture-files--make-list :root "/")))
    (contexture-files--filter list nil "./a\0./b/c\0./d")
    (should (equal (contexture-files--list-names list) '("b/c" "a")))
    (contexture-files--filter list nil "e\0")
    (should (equal (contexture-files--list-names list) '("de" "b/c" "a")))))

;;;; Not waiting, and leaving nothing

(ert-deftest contexture-mention-gives-way-to-keys-unless-asked ()
  (contexture-mention-tests--in-project
    (let ((unread-command-events (list ?x))
          (this-command nil))
      (should-not (contexture-mention-tests--offered "@main"))
      (let ((this-command 'completion-at-point))
        (should (contexture-mention-tests--offered " @main"))))))

(defconst contexture-mention-tests--wait 15
  "Less than the seconds that waiting would take; far more than not waiting does.")

(ert-deftest contexture-mention-waits-for-no-list-that-takes-long ()
  (contexture-mention-tests--in-project
    (contexture-files--forget)
    (cl-letf (((symbol-function 'contexture-files--git)
               (lambda (_) '("sh" "-c" "printf 'early\\0'; exec sleep 30"))))
      (contexture-mention-at-point)     ; begins it
      (let ((start (float-time))
            (contexture-mention--patience 0.03))
        (contexture-mention-tests--offered "@")
        (should (< (- (float-time) start) contexture-mention-tests--wait)))
      (llm-ert-wait-for (equal (contexture-mention-tests--offered " @ear")
                                      '("early")))
      ;; More may come, so it is not the only one yet.
      (should (string-suffix-p " @ear" (contexture-mention-tests--complete " @ear"))))))

(ert-deftest contexture-mention-waits-for-no-server-that-is-stopped ()
  (contexture-mention-tests--in-project
    (contexture-request 'ping)
    (contexture-ert-stop-server)
    (unwind-protect
        (let ((start (float-time))
              (contexture-mention--patience 0.03))
          (should (equal (contexture-mention-tests--offered "@lib") '("src/lib.rs")))
          (should (< (- (float-time) start) contexture-mention-tests--wait)))
      (contexture-ert-continue-server))))

(defun contexture-mention-tests--state ()
  "Return all that the modes could leave behind."
  (list :hooks (mapcar (lambda (hook)
                         (list hook (default-value hook) (local-variable-p hook)
                               (symbol-value hook)))
                       '(completion-at-point-functions after-change-major-mode-hook
                         contexture-notification-functions contexture-connected-hook
                         contexture-disconnected-hook kill-buffer-hook
                         post-command-hook pre-command-hook post-self-insert-hook
                         after-change-functions after-save-hook))
        :timers (contexture-test-timers)
        :overlays (overlays-in (point-min) (point-max))
        :processes (process-list)
        :lists (hash-table-count contexture-files--lists)
        :items (hash-table-count contexture-mention--items)
        :local (cl-remove-if-not
                (lambda (name) (string-prefix-p "contexture-mention" name))
                (mapcar (lambda (entry)
                          (symbol-name (if (consp entry) (car entry) entry)))
                        (buffer-local-variables)))))

(ert-deftest contexture-mention-mode-off-leaves-nothing ()
  (contexture-mention-tests--in-project
    (contexture-mention-mode -1)
    (let ((before (contexture-mention-tests--state)))
      (contexture-mention-mode)
      (contexture-mention-at-point)
      (let ((contexture-files--fresh -1))
        (contexture-mention-tests--offered "@ma"))
      (should-not (equal (contexture-mention-tests--state) before))
      (contexture-mention-mode -1)
      (cl-loop for (key value) on (contexture-mention-tests--state) by #'cddr
               do (should (equal (list key value)
                                 (list key (plist-get before key))))))))

(ert-deftest contexture-global-mention-mode-undoes-itself ()
  (let ((before (contexture-mention-tests--state))
        (earlier (generate-new-buffer "earlier"))
        (by-hand (generate-new-buffer "by hand"))
        (later (generate-new-buffer "later")))
    (unwind-protect
        (progn
          (with-current-buffer earlier (text-mode))
          (with-current-buffer by-hand (emacs-lisp-mode) (contexture-mention-mode))
          (contexture-global-mention-mode)
          (with-current-buffer later (text-mode))
          (should (equal (mapcar (lambda (buffer)
                                   (buffer-local-value 'contexture-mention-mode buffer))
                                 (list earlier by-hand later))
                         '(t t t)))
          (with-current-buffer later (texinfo-mode)
                               (should-not contexture-mention-mode))
          (contexture-global-mention-mode -1)
          (should (equal (contexture-mention--buffers) (list by-hand))))
      (contexture-global-mention-mode -1)
      (mapc #'kill-buffer (list earlier by-hand later)))
    (contexture-files--forget)
    (should (equal (contexture-mention-tests--state) before))))

(ert-deftest contexture-mention-modes-are-looked-at-in-order ()
  (with-temp-buffer
    (text-mode)
    (should (contexture-mention--wanted-p '(prog-mode text-mode)))
    (should-not (contexture-mention--wanted-p '(prog-mode)))
    (should-not (contexture-mention--wanted-p '((not text-mode) text-mode)))
    (should (contexture-mention--wanted-p '((not texinfo-mode) text-mode)))))

(provide 'contexture-mention-tests)
;;; contexture-mention-tests.el ends here
