;;; contexture-tools-tests.el --- Tests of the tools of Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A model that calls tools of Emacs.  The server is real, and so is its
;; model, which follows a script.

;;; Code:

(require 'contexture-tools-test-helper)
(require 'xref)

;;;; Turning on and off

(ert-deftest contexture-tools-are-off-until-they-are-turned-on ()
  (contexture-tools-test-with nil
    (should-not (contexture-tools-test-offered))
    (contexture-define-tool "change_it" #'ignore nil :changes)
    (should-not (contexture-tools-test-offered))
    (contexture-tools-on t (cons 'conversation "ses-1"))
    (should (member "read_buffer" (contexture-tools-test-offered)))
    (should-not (member "change_it" (contexture-tools-test-offered)))
    (contexture-tools-on "change_it" (cons 'project llm-ert-directory))
    (let ((tool (cl-find "change_it" (progn (contexture-tools-test-offered)
                                            (contexture-request 'list-tools))
                         :key (lambda (it) (plist-get it :name)) :test #'equal)))
      (should (equal (plist-get tool :projects) (list llm-ert-directory)))
      (should-not (plist-get tool :sessions))
      (should-not (plist-get tool :everywhere)))
    (contexture-tools-off (list t (cons 'conversation "ses-1")))
    (should (equal (contexture-tools-test-offered) '("change_it")))
    (contexture-tools-off)
    (should-not (contexture-tools-test-offered))
    (contexture-test-user-error "There is no tool none" (contexture-tools-on "none" t))
    (should-error (contexture-define-tool "x" #'ignore nil :eats))))

(ert-deftest contexture-tools-of-a-lisp-are-known-before-its-client ()
  (contexture-tools-test-with nil
    (should-not (or (featurep 'slime) (featurep 'sly)))
    (should (equal (contexture-tools-test-on "lisp_evaluate") '("lisp_evaluate")))
    (contexture-test-user-error "There is no tool lisp_x" (contexture-tools-on "lisp_x" t))))

(ert-deftest contexture-tools-are-told-to-a-new-server ()
  (contexture-tools-test-with nil
    (should (contexture-tools-test-on "read_buffer"))
    (contexture-ert-kill-server)
    (llm-ert-wait-for (equal (contexture-tools-test-offered) '("read_buffer")))))

;;;; Calls

(ert-deftest contexture-tools-read-what-is-not-saved ()
  (contexture-tools-test-with
      (contexture-tools-test-calling "read_buffer" "{\"file\": \"a.txt\", \"first\": 2}")
    (contexture-test-visiting (contexture-test-file "a.txt" "one" "two")
      (goto-char (point-max))
      (insert "three é\n")
      (narrow-to-region (point-min) (1+ (point-min)))
      (contexture-tools-test-on t)
      (should (equal (contexture-tools-test-ask)
                     '(("done" "a.txt, lines 2 to 4 of 4, not saved:\ntwo\nthree é\n"))))
      (should (equal (buffer-string) "o"))
      (set-buffer-modified-p nil))))

(ert-deftest contexture-tools-that-fail-tell-the-model-why ()
  (pcase-dolist (`(,function ,arguments ,why)
                 (list (list (lambda (_) (error "No light")) "{\"where\": \"x\"}" "No light")
                       (list (lambda (_) 7) "{\"where\": \"x\"}" "returned no text")
                       (list #'identity "{}" "missing properties 'where'; call again")
                       (list #'identity "{\"where\": 7}" "at /where: want string, but got number; call again")
                       (list (lambda (_) (read-string "Where? ")) "{\"where\": \"x\"}" "")))
    (contexture-tools-test-with (contexture-tools-test-calling "look" arguments)
      (contexture-define-tool "look" function '((where "A place")) :reads
        :description "Looks.")
      (contexture-tools-test-on "look")
      (pcase-let ((`((,outcome ,text)) (contexture-tools-test-ask)))
        (should (equal outcome "failed"))
        (should (string-search why text))))))

(ert-deftest contexture-tools-that-change-something-ask-in-the-conversation ()
  (let ((answers (contexture-tools-test-calling "change_it" "{\"to\": \"z\"}"))
        (changed nil))
    (contexture-tools-test-with (append answers answers answers)
      (contexture-define-tool "change_it" (lambda (to) (push to changed) "ok")
        '((to "What it becomes")) :changes :description "Changes it." :touches "all of it")
      (contexture-tools-test-on "change_it")
      (contexture-conversation-test-open "talk")
      (dolist (decision '(refuse once))
        (contexture-conversation-test-type "Change it")
        (contexture-conversation-send)
        (contexture-conversation-test-await-request)
        (should (string-search "change_it" (contexture-conversation-test-shown)))
        (should (string-search "(reaches all of it) with" (contexture-conversation-test-shown)))
        (should-not changed)
        (contexture-conversation-approve decision)
        (contexture-conversation-test-wait))
      (should (equal changed '("z")))
      ;; The conversation can allow it by its name.
      (contexture-conversation-tools 'allow "change_it")
      (llm-ert-wait-for (equal (contexture-conversation--allowed-tools) '("change_it")))
      (should (string-search "change_it everywhere" (contexture-conversation--tools-text)))
      (contexture-conversation-test-send "Change it")
      (should (equal changed '("z" "z")))
      (should (string-search "change_it: allowed once" (contexture-conversation-test-shown))))))

(ert-deftest contexture-tools-that-go-on-are-ended-with-the-turn ()
  (contexture-tools-test-with '(((call "wait" "{}")))
    (let (startedp endedp done)
      (contexture-define-tool "wait" (lambda (tell)
                                       (setq startedp tell)
                                       (lambda () (setq endedp t)))
        nil :reads :description "Waits." :async t)
      (contexture-tools-test-on "wait")
      (let ((id (contexture-request-async 'chat '(:content "x")
                                          :error (lambda (problem) (setq done problem)))))
        (llm-ert-wait-for startedp)
        (contexture-request 'cancel (list :id id)))
      (llm-ert-wait-for (and done endedp))
      (should (zerop (hash-table-count contexture-tools--calls)))
      ;; What comes too late goes nowhere.
      (funcall startedp "late")
      (contexture-test-settle))))

(ert-deftest contexture-tools-let-the-user-type ()
  (contexture-tools-test-with nil
    (let ((calls 0)
          (contexture-tools--pause 0))
      (contexture-define-tool "look" (lambda () (cl-incf calls) "dark") nil :reads
        :description "Looks.")
      (contexture-tools-test-on "look")
      (contexture-tools-test-call 1 "look")
      (let ((call (gethash 1 contexture-tools--calls))
            (unread-command-events '(?a)))
        (cancel-timer (contexture-tools--call-timer call))
        (contexture-tools--run call)
        (should (zerop calls))
        (should (contexture-tools--call-timer call)))
      (llm-ert-wait-for (zerop (hash-table-count contexture-tools--calls)))
      (should (= calls 1)))))

(ert-deftest contexture-tools-leave-nothing-behind ()
  (contexture-tools-test-with nil
    (contexture-tools-test-on t)
    (contexture-test-visiting (contexture-test-file "a.el" "(defun my-a ()" "  (car '(1)))")
      (let ((calls '(("list_buffers") ("none") ("read_buffer" . "{\"file\": \"a.el\"}")
                     ("read_buffer" . "{\"file\": \"none\"}")
                     ("find_documentation" . "{\"symbol\": \"car\", \"file\": \"a.el\"}")
                     ("find_definitions" . "{\"symbol\": \"car\", \"file\": \"a.el\"}")
                     ("list_definitions" . "{\"file\": \"a.el\"}")
                     ("describe_elisp" . "{\"name\": \"car\"}")
                     ("search_project" . "{\"regexp\": \"my\"}") ("list_commands"))))
        (cl-flet ((make-calls (first count)
                    (cl-loop for number from first repeat count
                             for (tool . arguments) = (nth (% number (length calls)) calls)
                             do (contexture-tools-test-call
                                 number tool llm-ert-directory arguments)
                             ;; Not all searches at the same time.
                             when (zerop (% number 20))
                             do (llm-ert-wait-for
                                    (zerop (hash-table-count contexture-tools--calls))))
                    (llm-ert-wait-for (zerop (hash-table-count contexture-tools--calls)))
                    (contexture-test-settle)))
          ;; What is loaded for the first call of a tool may stay.
          (make-calls 0 10)
          (should-not (llm-ert-leftovers (make-calls 10 1000))))))))

(ert-deftest contexture-tools-results-are-cut ()
  (should (equal (contexture-tools--cut (propertize "x" 'face 'bold)) "x"))
  (let ((cut (contexture-tools--cut (make-string 10000000 ?x))))
    (should (< (length cut) contexture-tools--longest-result))
    (should (string-suffix-p "of 10000000 characters)" cut))))

;;;; What Emacs shows models

(ert-deftest contexture-tools-emacs-shows-only-the-project ()
  (contexture-test-in-directory
   (lambda ()
     (let* ((outside (make-temp-file "contexture-outside"))
            (buffers (list (find-file-noselect outside)
                           (find-file-noselect (contexture-test-file "in/a.txt" "x")))))
       (unwind-protect
           (let ((contexture-tool-project (concat llm-ert-directory "in/")))
             (should (equal (contexture-tools-emacs--list-buffers) "a.txt (text-mode)"))
             (should-error (contexture-tools-emacs--read-buffer outside nil nil))
             (should-error (contexture-tools-emacs--read-buffer "../b" nil nil))
             (let ((contexture-tool-project nil))
               (should-error (contexture-tools-emacs--list-buffers)))
             (let ((contexture-tool-project "/ssh:host:/x/"))
               (should-error (contexture-tools-emacs--list-buffers))))
         (mapc #'kill-buffer buffers)
         (delete-file outside))))))

(ert-deftest contexture-tools-emacs-knows-code ()
  (contexture-test-in-directory
   (lambda ()
     (contexture-test-visiting
         (contexture-test-file "a.el" "(defun my-a ()" "  \"Say a.\"" "  (car '(1)))"
                               "(defvar my-b (my-a))" "(list \"" "(defun no-c ())\")")
       (let ((seen #'contexture-tools-test-seen))
         (should (equal (funcall seen #'contexture-tools-emacs--outline "a.el")
                        "4: Variables/my-b\n1: my-a"))
         (should (string-search "(defun car" (funcall seen #'contexture-tools-emacs--definitions
                                                      "car" "a.el" 3)))
         (should (string-search "nothing is known"
                                (funcall seen #'contexture-tools-emacs--definitions
                                         "no-such-thing" "a.el" nil)))
         (should (string-match-p "car: (LIST)"
                                 (contexture-tools-test-seen-later
                                  #'contexture-tools-emacs--documentation "car" "a.el" 3)))
         (let ((told (funcall seen #'contexture-tools-emacs--describe "car")))
           (should (string-prefix-p "Function (car LIST):\nReturn the car of LIST." told)))
         (should (string-prefix-p "Variable fill-column:"
                                  (funcall seen #'contexture-tools-emacs--describe "fill-column")))
         (should-error (funcall seen #'contexture-tools-emacs--describe "no-such-thing-yet"))
         (should-not (intern-soft "no-such-thing-yet")))))))

(ert-deftest contexture-tools-emacs-shows-diagnostics-and-output ()
  (require 'compile)
  (require 'flymake)
  (contexture-test-in-directory
   (lambda ()
     (contexture-test-visiting (contexture-test-file "a.txt" "one" "two")
       (let ((seen #'contexture-tools-test-seen))
         (should (string-search "report nothing"
                                (funcall seen #'contexture-tools-emacs--diagnostics nil)))
         (let ((buffer (current-buffer)))
           (cl-letf (((symbol-function 'flymake-diagnostics)
                      (lambda (&rest _)
                        (list (flymake-make-diagnostic buffer 5 6 :error "is\nwrong")))))
             (setq-local flymake-mode t)
             (should (equal (funcall seen #'contexture-tools-emacs--diagnostics "a.txt")
                            "a.txt:2: error: is wrong"))
             (setq-local flymake-mode nil)))
         (should-error (funcall seen #'contexture-tools-emacs--compilation))
         (with-temp-buffer
           (setq default-directory llm-ert-directory)
           (insert "a.txt:2: wrong\n")
           (compilation-mode)
           (should (string-suffix-p ":\na.txt:2: wrong\n"
                                    (funcall seen #'contexture-tools-emacs--compilation)))))))))

(ert-deftest contexture-tools-emacs-searches ()
  (contexture-test-in-directory
   (lambda ()
     (contexture-test-file "a.txt" "one" "two")
     (contexture-test-file "b.txt" "none")
     (dolist (case '(("^on|^no" "a.txt:1:one" "b.txt:1:none") ("xyz" "nothing matches")))
       (let ((seen (contexture-tools-test-seen-later
                    #'contexture-tools-emacs--search (car case))))
         (dolist (part (cdr case))
           (should (string-search part seen)))))
     (should (string-match-p "[Uu]nmatched"
                             (contexture-tools-test-seen-later
                              #'contexture-tools-emacs--search "(")))
     (let ((before (process-list)))
       (funcall (contexture-tools-test-seen #'contexture-tools-emacs--search
                                              #'ignore "one"))
       (llm-ert-wait-for (equal (process-list) before))))))

(ert-deftest contexture-tools-emacs-lists-files ()
  (dolist (git '(nil t))
    (contexture-test-in-directory
     (lambda ()
       (dolist (name '("one.el" "in/two.el" "in/Ünder.txt" "in/deep/three.txt"))
         (contexture-test-file name "x"))
       (when git
         (contexture-test-file ".gitignore" "deep/")
         (call-process "git" nil nil nil "init" "-q" "."))
       (cl-flet ((listed (&optional pattern)
                   (sort (split-string (contexture-tools-test-seen-later
                                        #'contexture-tools-emacs--files pattern)
                                       "\n")
                         #'string<)))
         (should (equal (listed "*.el") '("in/two.el" "one.el")))
         (should (equal (listed "t*.el") '("in/two.el")))
         (should (equal (listed "in/*.txt")
                        (if git '("in/Ünder.txt") '("in/deep/three.txt" "in/Ünder.txt"))))
         (should (equal (listed "ünd") '("in/Ünder.txt")))
         (should (equal (listed "[") '("no file of the project has such a name")))
         (should (equal (length (listed)) 4)))))))

(ert-deftest contexture-tools-emacs-lists-very-many-files-without-holding-emacs ()
  (contexture-test-in-directory
   (lambda ()
     (let ((program (expand-file-name "names")) (make (symbol-function 'make-process))
           (most 0) (start (float-time)))
       ;; A name goes on in the next piece of output, and the last has no line's end.
       (with-temp-file program
         (insert "#!/bin/sh\nseq -f 'a long folder/with a name/file %.0f.txt' 60000\nprintf 'last 1.txt'\n"))
       (set-file-modes program #o700)
       (cl-letf (((symbol-function 'make-process)
                  (lambda (&rest arguments)
                    (cl-flet ((watched (function)
                                (lambda (&rest arguments)
                                  (let ((before (contexture-test-busy-seconds)))
                                    (apply function arguments)
                                    (setq most (max most (- (contexture-test-busy-seconds) before)))))))
                      (apply make `(:command (,program)
                                    :filter ,(watched (plist-get arguments :filter))
                                    :sentinel ,(watched (plist-get arguments :sentinel))
                                    ,@arguments))))))
         (should (string-match-p "... and 5801 more\\'\\|last 1.txt\\'"
                                 (contexture-tools-test-seen-later #'contexture-tools-emacs--files "*1.txt"))))
       (should (< most 0.1))
       (should (< (- (float-time) start) 60))))))

(ert-deftest contexture-tools-emacs-compares-names-without-going-back ()
  (cl-flet ((matches (pattern name)
              (and (funcall (contexture-tools-emacs--glob pattern) name) t)))
    ;; One regexp would take years for these.
    (let ((name (make-string 4000 ?a)))
      (should-not (matches (concat (apply #'concat (make-list 40 "a*")) "b") name))
      (should-not (matches (concat "*" (apply #'concat (make-list 40 "?*a*")) "b") name))
      (should (matches (apply #'concat (make-list 40 "*a")) name)))
    ;; Elsewhere, it says what one regexp says.
    (let ((signs ["a" "B" "*" "?" "/" "." "[ab]" "b"]))
      (random "globs")
      (dotimes (_ 3000)
        (let* ((pick (lambda (most)
                       (mapconcat (lambda (_) (aref signs (random 8)))
                                  (number-sequence 0 (random most)) "")))
               (pattern (concat (funcall pick 5) "*" (funcall pick 3)))
               (name (replace-regexp-in-string "[][*?]" "" (funcall pick 12)))
               (case-fold-search t))
          (should (equal (list pattern name (matches pattern name))
                         (list pattern name
                               (and (string-match-p
                                     (concat "\\(?:\\`\\|/\\)"
                                             (substring (wildcard-to-regexp pattern) 2))
                                     name)
                                    t)))))))
    (dolist (pattern '("[*" "*[" "[]*" "a[*]b" "[b-a]*" "[^*"))
      (should (booleanp (matches pattern "a[x]b"))))))

(ert-deftest contexture-tools-emacs-hands-backends-no-option-and-no-shell-code ()
  (contexture-test-in-directory
   (lambda ()
     (contexture-test-file "a.txt" "one")
     (contexture-test-visiting (expand-file-name "a.txt")
       (let (given)
         (setq-local xref-backend-functions (list (lambda () 'some)))
         (cl-letf (((symbol-function 'xref-backend-definitions)
                    (lambda (_ name) (push name given) nil))
                   ((symbol-function 'xref-backend-references)
                    (lambda (_ name) (push name given) nil)))
           (dolist (tool '(contexture-tools-emacs--definitions
                           contexture-tools-emacs--references))
             (dolist (name '("--config=x" "-e" "$(touch x)" "a;b" "`x`" "a b" "a\nb" "" "a|b" "a&b"
                             "a\"b" "a'b" "a\\b" "a\0b"))
               (should-error (contexture-tools-test-seen tool name "a.txt" nil)))
             (should-not given)
             (dolist (name '("foo->bar" "std::vector<int>" "$x" "*name*" "a.b/c" "f?"))
               (contexture-tools-test-seen tool name "a.txt" nil))
             (should (= (length given) 6))
             (setq given nil))))))))

(ert-deftest contexture-tools-emacs-lets-no-index-of-a-repository-choose-a-program ()
  (contexture-test-in-directory
   (lambda ()
     (dolist (file '("GPATH" "GTAGS" "GRTAGS" "ID" "cscope.out"))
       (contexture-test-file file "x"))
     (contexture-test-file "a.c" "int foobar;")
     (call-process "git" nil nil nil "init" "-q" ".")
     (contexture-test-visiting (expand-file-name "a.c")
       (c-mode)
       (setq-local xref-backend-functions (list (lambda () 'some)))
       (let (programs)
         (cl-letf* ((call-process (symbol-function 'call-process))
                    ((symbol-function 'call-process)
                     (lambda (program &rest arguments)
                       (push (cons program arguments) programs)
                       (apply call-process program arguments))))
           (should (string-search "a.c:1:" (contexture-tools-test-seen
                                            #'contexture-tools-emacs--references
                                            "foobar" "a.c" nil))))
         (should programs)
         (should-not (cl-intersection (mapcar #'car programs)
                                      '("global" "gtags" "lid" "gid" "cscope")
                                      :test #'equal)))))))

(ert-deftest contexture-tools-emacs-shows-names-on-one-line ()
  (contexture-test-in-directory
   (lambda ()
     (contexture-test-visiting (contexture-test-file "a\nb\u202e.txt" "one")
       (should (equal (substring-no-properties
                       (contexture-tools-test-seen #'contexture-tools-emacs--list-buffers))
                      "a\\nb\\u{202e}.txt (text-mode)"))))))

;;;; Why tools that read run nothing of a model's

(defconst contexture-tools-tests--reason ";; Runs nothing of a model's: \\(.+\\)"
  "Regexp for the beginning of the comment above a tool that reads.")

(defun contexture-tools-tests--reasonless (names lead)
  "Return those of NAMES that are defined in this buffer without a reason above.
LEAD is the regexp for what begins a definition."
  (cl-remove-if
   (lambda (name)
     (goto-char (point-min))
     (when (re-search-forward (format "^%s%s\\_>" lead (regexp-quote name)) nil t)
       (forward-line -1)
       (while (and (looking-at-p ";; ") (not (looking-at contexture-tools-tests--reason))
                   (zerop (forward-line -1))))
       (looking-at contexture-tools-tests--reason)))
   names))

(ert-deftest contexture-tools-that-read-say-why-they-run-nothing ()
  (contexture-tools--complete "lisp_look")
  (with-temp-buffer
    (insert-file-contents (locate-library "contexture-tools.el" t))
    (let ((names (cl-loop for tool in contexture-tools--defined
                          for function = (contexture-tools--tool-function tool)
                          when (eq (contexture-tools--tool-effect tool) :reads)
                          collect (symbol-name function))))
      (should (> (length names) 10))
      (should-not (contexture-tools-tests--reasonless names "(defun "))
      ;; One without a reason is seen.
      (goto-char (point-min))
      (search-forward "(defun contexture-tools-emacs--read-buffer")
      (forward-line -1)
      (re-search-backward contexture-tools-tests--reason)
      (replace-match ";; Reads.")
      (should (equal (contexture-tools-tests--reasonless names "(defun ")
                     '("contexture-tools-emacs--read-buffer"))))))

(ert-deftest contexture-tools-lisp-that-read-say-why-they-run-nothing ()
  (with-temp-buffer
    (insert-file-contents contexture-tools-lisp--source)
    (lisp-data-mode)
    ;; What LOOK calls, of the functions that only it calls.
    (search-forward "\n;;; Looking up")
    (let* ((part (buffer-substring (point) (point-max)))
           (look (progn (search-forward "(defun look ")
                        (buffer-substring (point) (progn (end-of-defun) (point)))))
           (names (cl-loop with start = 0
                           while (string-match "(defun \\([^ ]+\\)" part start)
                           do (setq start (match-end 0))
                           for name = (match-string 1 part)
                           when (or (equal name "look")
                                    (string-match-p (format "(%s[ )]" (regexp-quote name)) look))
                           collect name)))
      (should (> (length names) 5))
      (should-not (contexture-tools-tests--reasonless names "(defun ")))))

;;;; Other agents

(defmacro contexture-tools-test-with-agent (effect &rest body)
  "Run BODY with the tool change_it of EFFECT on for other agents in the project.
What it was called with is in `changed', in an order that has the last first."
  (declare (indent 1) (debug t))
  `(contexture-tools-test-with nil
     (let (changed)
       (contexture-define-tool "change_it" (lambda (to) (push to changed) "ok")
         '((to "What it becomes")) ,effect :description "Changes it." :touches "all of it")
       (contexture-tools-on "change_it" (cons 'agents llm-ert-directory))
       (contexture-tools-test-offered)
       ,@body)))

(defun contexture-tools-test-agent-calls (to)
  "Let an agent call change_it with TO; return a function that returns the result."
  (let (answer)
    (contexture-request-async
     'call-tool (list :tool "change_it" :project llm-ert-directory :agent "other\u202eagent"
                      :arguments (json-encode `((to . ,to))))
     :success (lambda (result) (setq answer result)) :error #'ignore)
    (lambda ()
      (llm-ert-wait-for answer)
      (list (plist-get answer :content) (eq (plist-get answer :failed) t)))))

(defun contexture-tools-test-question ()
  "Return the buffer that asks about an agent's call, once there is one."
  (llm-ert-wait-for
   (cl-find-if (lambda (buffer)
                 (buffer-local-value 'contexture-tools--asked buffer))
               (buffer-list))))

(ert-deftest contexture-tools-for-other-agents-are-no-tools-of-sessions ()
  (contexture-tools-test-with-agent :changes
    (let ((tool (car (contexture-request 'list-tools))))
      (should (equal (plist-get tool :agent-projects) (list llm-ert-directory)))
      (should-not (plist-get tool :everywhere))
      (should-not (plist-get tool :agents)))
    ;; What the server says is checked again, both ways.
    (pcase-dolist (`(,agent ,project ,onp)
                   `(("a" ,llm-ert-directory t) ("a" "/" nil) ("a" nil nil)
                     (nil ,llm-ert-directory nil)))
      (should (eq onp (and (contexture-tools--onp (contexture-tools--named "change_it")
                                                  agent project)
                           t))))
    (contexture-tools-off)
    (contexture-tools-on "change_it" t)
    (should-not (contexture-tools--onp (contexture-tools--named "change_it") "a" "/"))
    (should (equal (contexture-tools--entry-text '("x" agents)) "x as other agents in all projects"))))

(ert-deftest contexture-tools-ask-before-another-agent-changes-something ()
  (contexture-tools-test-with-agent :changes
    (let ((to "#.(x)\u202e\n\e[31m") (window (selected-window)))
      (pcase-dolist (`(,decide ,expected)
                     `((contexture-tools-allow ("ok" nil))
                       (contexture-tools-refuse ("The user did not allow the call" t))
                       (kill-buffer ("The user did not allow the call" t))))
        (setq changed nil)
        (let ((result (contexture-tools-test-agent-calls to)))
          (with-current-buffer (contexture-tools-test-question)
            (should (eq (selected-window) window))
            (should-not changed)
            (should (string-search "wants to call change_it" (buffer-string)))
            (should (string-search "It reaches all of it." (buffer-string)))
            (should (string-search "#.(x)" (buffer-string)))
            (should-not (string-match-p "[\u202e\e]" (buffer-string)))
            (save-window-excursion
              (pop-to-buffer (current-buffer))
              (funcall decide)))
          (should (equal (funcall result) expected))
          (should (equal changed (and (eq decide 'contexture-tools-allow) (list to)))))))))

;; What a tool reaches can change at any time, as when another Lisp is in use: before the
;; question, while it is shown, and before the server has heard of it.
(ert-deftest contexture-tools-reach-only-what-the-user-was-told-of ()
  (let* ((reached "the first") ran given
         (contexture-tools--defined nil) (contexture-tools '(("reach" t) ("reach" agents)))
         (contexture-tools--calls (make-hash-table))
         (contexture-tools--told-touches '(("reach" . "the first")))
         (inhibit-message t))
    (contexture-define-tool "reach" (lambda () (setq ran reached)) nil :changes
      :description "Reaches" :touches (lambda () reached))
    (cl-letf (((symbol-function 'contexture--later) #'funcall)
              ((symbol-function 'contexture--all-shown-p) #'always)
              ((symbol-function 'contexture-tools--give)
               (lambda (_ key text) (setq given (list key text)))))
      (cl-flet ((run (agent before while)
                  (setq reached "the first" ran nil given nil)
                  (funcall before)
                  (contexture-tools--called
                   (list :call 1 :tool "reach" :arguments "{}" :agent agent))
                  (funcall while)
                  (when agent
                    (with-current-buffer
                        (cl-find-if (lambda (it) (buffer-local-value 'contexture-tools--asked it))
                                    (buffer-list))
                      (contexture-tools-allow)))
                  ran)
                (change () (setq reached "the second")))
        (should (equal (run nil #'ignore #'ignore) "the first"))
        (should (equal (run "agent" #'ignore #'ignore) "the first"))
        ;; The question of an agent is made here, and names the second.
        (should (equal (run "agent" #'change #'ignore) "the second"))
        (should-not (run nil #'change #'ignore))
        (should (equal (car given) :error))
        (should-not (run "agent" #'ignore #'change))
        (should (equal (car given) :error))
        ;; The server has heard of it once it has answered.
        (setq contexture-tools--told-touches '(("reach" . "the second")))
        (should (equal (run nil #'change #'ignore) "the second"))
        (should-not (run nil #'ignore #'ignore))))))

(ert-deftest contexture-tools-questions-are-shown-to-their-end ()
  (contexture-tools-test-with-agent :changes
    (let* ((to (concat "harmless\n\nother:\nfake\n" (make-string 200 ?\n) "the end"))
           (result (contexture-tools-test-agent-calls to)))
      (save-window-excursion
        (switch-to-buffer (contexture-tools-test-question))
        ;; No text looks like another argument.
        (should (string-search "\nto:\n  harmless\n  \n  other:\n  fake\n" (buffer-string)))
        (set-window-start nil (point-min))
        (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
          (should-error (contexture-tools-allow) :type 'user-error)
          ;; To jump to the end is not to see all of it.
          (goto-char (point-max))
          (set-window-start nil (line-beginning-position -2))
          (should-error (contexture-tools-allow) :type 'user-error))
        (should-not changed)
        (goto-char (point-min))
        (set-window-start nil (point-min))
        (while (not (contexture--all-shown-p))
          (goto-char contexture--shown)
          (set-window-start nil contexture--shown))
        (contexture-tools-allow))
      (should (equal (funcall result) '("ok" nil)))
      (should (equal changed (list to))))))

(ert-deftest contexture-tools-refuse-patterns-that-take-long ()
  (dolist (pattern (list (make-string 256 ?a) (apply #'concat (make-list 20 "*?a"))
                         (make-string 9 ?*)))
    (should-error (contexture-tools-emacs--files #'ignore pattern))))

;; What is typed while a question comes, or twice by mistake, decides nothing.
(ert-deftest contexture-tools-questions-are-read-before-they-are-answered ()
  (dolist (decide '(contexture-tools-allow contexture-tools-refuse))
    (let (ran)
      (save-window-excursion
        (let* ((call (lambda ()
                       (contexture-tools--ask
                        (contexture-tools--make-call
                         :number 1 :values '("x") :agent "a"
                         :tool (contexture-tools--make-tool :name "t" :arguments '((to "")))))
                       (contexture-tools-test-question)))
               (old (funcall call))
               (new (progn (with-current-buffer old (setq contexture-tools--asked nil))
                           (prog1 (funcall call)
                             (with-current-buffer old (setq contexture-tools--asked
                                                            (contexture-tools--make-call
                                                             :number 2))))))
               (inhibit-message t))
          (unwind-protect
              (cl-letf (((symbol-function 'contexture-tools--run) (lambda (it) (push it ran)))
                        ((symbol-function 'contexture-tools--finish)
                         (lambda (it &rest _) (push it ran)))
                        ((symbol-function 'contexture--all-shown-p) (lambda () t))
                        ((symbol-function 'discard-input) #'ignore))
                (switch-to-buffer old)
                (switch-to-buffer new)
                (cl-flet ((press (buffer)
                            (with-current-buffer buffer
                              (let ((noninteractive nil))
                                (ignore-errors (funcall decide) t)))))
                  ;; Not drawn yet, then only just drawn, then read.
                  (should-not (press new))
                  (contexture--note-appeared (selected-window))
                  (should-not (press new))
                  (with-current-buffer old (setq contexture--appeared 1.0))
                  (with-current-buffer new (setq contexture--appeared 1.0))
                  (should-not ran)
                  (should (press new))
                  ;; The other one is there again, and was read long ago.
                  (should-not (press old))
                  (with-current-buffer old (setq contexture--appeared 1.0))
                  (should (press old))
                  (should (= 2 (length ran)))))
            (dolist (buffer (list old new))
              (when (buffer-live-p buffer)
                (with-current-buffer buffer (setq contexture-tools--asked nil))
                (kill-buffer buffer)))))))))

(ert-deftest contexture-tools-no-question-is-answered-by-what-was-typed-before ()
  (let ((unread-command-events (list ?y ?y)) typed)
    (cl-letf (((symbol-function 'y-or-n-p)
               (lambda (_) (setq typed unread-command-events) nil)))
      (contexture--y-or-n-p "Do it? "))
    (should-not typed))
  ;; Nobody asks in another way.
  (dolist (file (directory-files contexture--directory t "\\`contexture.*\\.el\\'"))
    (with-temp-buffer
      (insert-file-contents file)
      (emacs-lisp-mode)
      (while (re-search-forward "(\\(y-or-n-p\\|yes-or-no-p\\)\\_>" nil t)
        (should (or (nth 8 (syntax-ppss))
                    (equal "contexture--y-or-n-p" (add-log-current-defun))))))))

(ert-deftest contexture-tools-withdraw-a-question-that-nobody-waits-for ()
  (contexture-tools-test-with-agent :changes
    (let* ((id (contexture-request-async
                'call-tool (list :tool "change_it" :project llm-ert-directory
                                 :agent "other" :arguments "{\"to\": \"z\"}")
                :success #'ignore :error #'ignore))
           (buffer (contexture-tools-test-question)))
      (contexture-request 'cancel (list :id id))
      (llm-ert-wait-for (not (buffer-live-p buffer)))
      (should-not changed)
      (should (zerop (hash-table-count contexture-tools--calls))))))

(ert-deftest contexture-tools-that-read-do-not-ask-for-another-agent ()
  (contexture-tools-test-with-agent :reads
    (should (equal (funcall (contexture-tools-test-agent-calls "z")) '("ok" nil)))
    (should (equal changed '("z")))))

;;;; Files with secrets

(ert-deftest contexture-tools-ask-before-a-file-with-secrets ()
  (contexture-test-in-directory
   (lambda ()
     (let ((contexture-tools '(("read_buffer" t) ("read_buffer" agents)))
           (contexture-tools--calls (make-hash-table))
           (file (contexture-test-file ".env" "KEY=hush"))
           given)
       (make-symbolic-link ".env" "notes.txt")
       (contexture-test-file "a.el" "(car x)")
       (cl-letf (((symbol-function 'contexture-tools--give)
                  (lambda (_number _key text) (push text given)))
                 ((symbol-function 'contexture--later)
                  (lambda (function &rest arguments) (apply function arguments) nil)))
         (contexture-test-visiting (expand-file-name "a.el")
           (contexture-test-visiting file
             (dolist (agent '(nil "agent"))
               (dolist (name (list ".env" "./.env" "notes.txt" file ".ENV" (buffer-name)))
                 (setq given nil)
                 (contexture-tools--called
                  (list :call 1 :tool "read_buffer" :project llm-ert-directory
                        :agent agent :arguments (json-encode (list :file name))))
                 (should-not given)
                 (with-current-buffer "*contexture: question*"
                   (should (string-match-p "may have secrets" (buffer-string)))
                   (contexture-tools-refuse))
                 (should (string-match-p "did not allow" (car given))))
               (setq given nil)
               (contexture-tools--called
                (list :call 1 :tool "read_buffer" :project llm-ert-directory
                      :agent agent :arguments (json-encode (list :file "a.el"))))
               (should (string-match-p "(car x)" (car given)))))))))))

(ert-deftest contexture-tools-see-packed-files-that-are-open ()
  (contexture-test-in-directory
   (lambda ()
     (let ((contexture-tool-project default-directory))
       (with-temp-buffer
         (insert "(car packed)")
         (setq buffer-file-name (expand-file-name "a.el.gz")
               buffer-file-truename (abbreviate-file-name buffer-file-name))
         (should (string-match-p "a.el.gz" (contexture-tools-emacs--list-buffers)))
         (should (string-match-p "packed" (contexture-tools-emacs--read-buffer "a.el.gz" nil nil)))
         (set-buffer-modified-p nil)
         (setq buffer-file-name nil))
       (should-error (contexture-tools-emacs--read-buffer "a.el.gz" nil nil))))))

(ert-deftest contexture-tools-search-no-file-with-secrets ()
  (dolist (git '(nil t))
    (contexture-test-in-directory
     (lambda ()
       (when git (call-process "git" nil nil nil "init" "-q"))
       (make-directory "sub/sub" t)
       (dolist (name '(".env" "sub/.env.local" "sub/sub/server.key" "id_rsa" "a.txt" "sub/b.txt"))
         (contexture-test-file name "hush"))
       (let ((seen (contexture-tools-test-seen-later #'contexture-tools-emacs--search "hush")))
         (should (string-match-p "a.txt" seen))
         (should (string-match-p "sub/b.txt" seen))
         (should-not (string-match-p "env\\|key\\|rsa" seen)))))))

(ert-deftest contexture-tools-say-that-the-conversation-is-not-of-the-project ()
  (contexture-tools-test-with nil
    (contexture-define-tool "read_it" (lambda () "it") nil :reads)
    (dolist (case `((,llm-ert-directory "none" "has no project")
                    (,llm-ert-directory "talk" nil)
                    (,temporary-file-directory "talk" "is about")))
      (pcase-let ((`(,folder ,name ,said) case))
        (contexture-request 'open-session (list :name name))
        (llm-ert-with-messages messages
          (contexture-tools-on "read_it" (cons 'project folder))
          (if said
              (llm-ert-wait-for (string-search said messages))
            (contexture-request 'ping) ; the answers before it have come
            (should-not (string-search "not offered" messages))))))))

(ert-deftest contexture-tools-questions-are-shown-in-order-and-hold-nobody ()
  (dolist (value (list "cp \u05d0 \u05d1" "a\nb"
                       (apply #'concat (make-list 300000 "a\n"))
                       (make-string 600000 ?x)
                       (apply #'concat (make-list 200000 "\u05d0 "))))
    (let ((call (contexture-tools--make-call
                 :number 1 :tool (contexture-tools--named "propose_command")
                 :values (list value) :agent "agent" :project "/tmp/"))
          (gc-cons-threshold most-positive-fixnum)
          (before (contexture-test-busy-seconds)))
      (save-window-excursion
        (contexture-tools--ask call)
        (should (< (- (contexture-test-busy-seconds) before) 1))
        (with-current-buffer "*contexture: question*"
          (should-not bidi-display-reordering)
          (goto-char (point-min))
          (search-forward "command:\n")
          (let ((from (point)))
            (while (not (eobp))
              (should (<= (- (line-end-position) (point)) contexture--longest-asked-line))
              (should (looking-at "  \\|\\'"))
              (forward-line))
            (should (= (length (string-replace " " "" (string-replace "\n" "" value)))
                       (length (string-replace " " "" (string-replace
                                                       "\n" "" (buffer-substring from (point-max))))))))))
      (funcall (contexture-tools--call-cancel call)))))

(ert-deftest contexture-tools-search-leaves-out-secrets-by-their-whole-name ()
  (contexture-test-in-directory
   (lambda ()
     (dolist (folder '("work/" ".ssh/"))
       (let* ((contexture-tool-project (expand-file-name folder llm-ert-directory))
              (auth-sources (list (concat contexture-tool-project "mine")))
              (told nil))
         (make-directory contexture-tool-project t)
         (dolist (name '("mine" "plain" ".env"))
           (llm-ert-write-file (concat folder name) "password here\n"))
         (contexture-tools-emacs--search (lambda (&rest result) (setq told result)) "password")
         (llm-ert-wait-for told)
         (should (string-match-p (if (equal folder "work/") "\\`\\(?:\\./\\)?plain:1:password here\\'"
                                   "\\`nothing matches\\'")
                                 (car told))))))))

(provide 'contexture-tools-tests)
;;; contexture-tools-tests.el ends here
