;;; contexture-tools-change-tests.el --- Tests of changes and runs by models  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Changes that a model proposes, and commands that it runs.

;;; Code:

(require 'contexture-tools-test-helper)
(require 'contexture-tools)
(require 'compile)

(defvar contexture-tools-change-tests--told nil
  "What the tool told last: (TEXT) or (nil PROBLEM).")

(defun contexture-tools-change-tests--tell (text &optional problem)
  "Record that a tool told TEXT, or PROBLEM."
  (setq contexture-tools-change-tests--told (if text (list text) (list nil problem))))

(defmacro contexture-tools-change-tests--with (text &rest body)
  "Run BODY in a buffer that visits a file a.el with TEXT, of a project."
  (declare (indent 1) (debug t))
  `(contexture-test-in-directory
    (lambda ()
      (let ((contexture-tool-project llm-ert-directory)
            (contexture-review--all nil)
            (contexture-tools-change-tests--told nil))
        (contexture-test-visiting (llm-ert-write-file "a.el" ,text)
          ,@body
          (set-buffer-modified-p nil))))))

(defun contexture-tools-change-tests--propose (new &optional old definition file)
  "Propose NEW for OLD or DEFINITION in FILE, a.el by default."
  (contexture-tools-change--propose #'contexture-tools-change-tests--tell
                                    (or file "a.el") new old definition))

(defun contexture-tools-change-tests--refused (regexp &rest arguments)
  "Check that proposing with ARGUMENTS is refused, with a reason matching REGEXP."
  (should (string-match-p regexp (error-message-string
                                  (should-error
                                   (apply #'contexture-tools-change-tests--propose
                                          arguments)))))
  (should-not (contexture-review--open))
  (should-not contexture-tools-change-tests--told))

;;;; Proposing a change

(ert-deftest contexture-tools-change-is-accepted-and-undone ()
  (contexture-tools-change-tests--with "(defun a ()\n  1)\n(defun b ()\n  1)\n"
    (buffer-enable-undo)
    (narrow-to-region (point-min) (1+ (point-min)))
    (contexture-tools-change-tests--propose "2)\n(defun b" "1)\n(defun b")
    (should-not contexture-tools-change-tests--told)
    (widen)
    (should (string-search "  1)\n(defun b" (buffer-string)))
    (contexture-review-accept)
    (should (equal contexture-tools-change-tests--told
                   '("The user accepted the change to a.el.\na.el is not saved yet.")))
    (should (equal (buffer-string) "(defun a ()\n  2)\n(defun b ()\n  1)\n"))
    (setq last-command 'other)
    (undo)
    (should (equal (buffer-string) "(defun a ()\n  1)\n(defun b ()\n  1)\n"))
    (should-not (cl-remove-if #'symbolp kill-buffer-hook))))

(ert-deftest contexture-tools-change-goes-part-by-part ()
  (contexture-tools-change-tests--with "one\ntwo\nthree\nfour\n"
    (contexture-tools-change-tests--propose "ONE\ntwo\nTHREE\n" "one\ntwo\nthree\n")
    (goto-char (point-min))
    (contexture-review-accept-part)
    (should-not contexture-tools-change-tests--told)
    (contexture-review-reject-part)
    (should (equal (buffer-string) "ONE\ntwo\nthree\nfour\n"))
    (should (equal (car contexture-tools-change-tests--told)
                   "The user accepted a part of the change to a.el.  \
Your proposal (-) became (+):\n-THREE\n+three\n\na.el is not saved yet."))))

(ert-deftest contexture-tools-change-in-many-places-holds-nobody-up ()
  (cl-flet ((text (count function) (mapconcat function (number-sequence 1 count) "")))
    (random "places")
    (pcase-dolist
        (`(,old ,new)
         (list
          ;; Each second line differs.
          (list (text 40000 (lambda (it) (if (cl-evenp it) "a\n" "x\n")))
                (text 40000 (lambda (it) (if (cl-evenp it) "b\n" "x\n"))))
          (list (text 12000 (lambda (it) (if (cl-evenp it) "a\n" (format "%d\n" it))))
                (text 12000 (lambda (it) (if (cl-evenp it) "" (format "%d\nb\n" it)))))
          ;; Little is the same, and it takes long to find out.
          (list (text 90000 (lambda (_) (format "%c\n" (+ ?a (random 2)))))
                (text 90000 (lambda (_) (format "%c\n" (+ ?a (random 2))))))))
      (contexture-tools-change-tests--with old
        (garbage-collect)
        (let ((before (contexture-test-busy-seconds))
              (gc-cons-threshold most-positive-fixnum))
          (contexture-tools-change-tests--propose new old)
          (should (<= (length (contexture-review--parts (car (contexture-review--open))))
                      contexture-review--most-parts))
          (contexture-review-accept)
          (should (< (- (contexture-test-busy-seconds) before) 2)))
        (let ((same (equal (buffer-string) new))) ; both are too long to be told
          (should same))
        (should (equal (car contexture-tools-change-tests--told)
                       "The user accepted the change to a.el.\na.el is not saved yet."))))))

(ert-deftest contexture-tools-change-with-a-long-line-holds-nobody-up ()
  (dolist (cut '(nil t))
    (dolist (sign '(?x ?\u6587 ?\u0301))
      (contexture-tools-change-tests--with "one\n"
        (switch-to-buffer (current-buffer))
        (setq truncate-lines cut)
        (let ((before (contexture-test-busy-seconds))
              (new (concat "one" (make-string 190000 sign) "\n"))
              (gc-cons-threshold most-positive-fixnum))
          (contexture-tools-change-tests--propose new "one\n")
          (should (< (- (contexture-test-busy-seconds) before) 2))
          (should (equal (length new)
                         (1+ (apply #'+ (mapcar #'length
                                                (overlay-get (car (contexture-review--parts-here))
                                                             'contexture-lines))))))
          (contexture-review-reject))))))

(ert-deftest contexture-tools-change-joins-parts-without-loss ()
  (random "parts")
  (dotimes (_ 100)
    (cl-flet ((text () (mapconcat (lambda (_) (make-string 1 (+ ?a (random 3))))
                                  (number-sequence 1 (random 40))
                                  (if (zerop (random 2)) "\n" "\n\n"))))
      (let ((old (text)) (new (text))
            (contexture-review--most-parts (1+ (random 4)))
            (contexture-review--most-compared (if (zerop (random 2)) 10 100)))
        (let ((parts (contexture-review--compare old new))
              (lines (split-string (string-remove-suffix "\n" (contexture-review--ended old)) "\n")))
          (when (string-empty-p old) (setq lines nil))
          (should (<= (length parts) contexture-review--most-parts))
          (pcase-dolist (`(,line ,count . ,text) (reverse parts))
            (setq lines (append (seq-take lines line)
                                (and (not (string-empty-p text))
                                     (split-string (string-remove-suffix "\n" text) "\n"))
                                (nthcdr (+ line count) lines))))
          (should (equal (mapconcat (lambda (it) (concat it "\n")) lines "")
                         (contexture-review--ended new))))))))

(ert-deftest contexture-tools-change-is-rejected-with-a-remark ()
  (contexture-tools-change-tests--with "one\n"
    (contexture-tools-change-tests--propose "two\n" "one\n")
    (contexture-review-again "No numbers, please")
    (should (equal contexture-tools-change-tests--told
                   '("The user rejected the change to a.el.\n\
The user says: No numbers, please")))
    (setq contexture-tools-change-tests--told nil)
    (contexture-tools-change-tests--propose "two\n" "one\n")
    (contexture-review-reject)
    (should (equal contexture-tools-change-tests--told
                   '("The user rejected the change to a.el.")))
    (should (equal (buffer-string) "one\n"))))

(ert-deftest contexture-tools-change-replaces-a-definition ()
  (contexture-tools-change-tests--with ";; A.\n(defun a ()\n  1)\n\n(defun b ()\n  (a))\n"
    (contexture-tools-change-tests--propose ";; B.\n(defun b ()\n  2)" nil "b")
    (contexture-review-accept)
    (should (equal (buffer-string)
                   ";; A.\n(defun a ()\n  1)\n\n;; B.\n(defun b ()\n  2)\n"))
    (setq contexture-tools-change-tests--told nil)
    (contexture-tools-change-tests--refused "Say which text" "x" "" "")
    (contexture-tools-change-tests--refused "definition of c is not in" "x" nil "c")
    (goto-char (point-max))
    (insert "(defun a ()\n  3)\n")
    (contexture-tools-change-tests--refused "definition of a .*more than once" "x" nil "a")))

(ert-deftest contexture-tools-change-puts-a-text-in-place-as-it-is ()
  (contexture-tools-change-tests--with "(defun a ()\n  1)\n"
    (contexture-tools-change-tests--propose "  2\n\n" "  1" "a")
    (contexture-review-accept)
    (should (equal (buffer-string) "(defun a ()\n  2\n\n)\n"))))

(ert-deftest contexture-tools-change-is-refused-in-plain-words ()
  (contexture-tools-change-tests--with "one\ntwo two\naaa\n"
    (let ((refused #'contexture-tools-change-tests--refused))
      (funcall refused "old text is not in a.el as it is now" "x" "three")
      (funcall refused "not in a.el" "x" "ONE")
      (funcall refused "more than once" "x" "two")
      (funcall refused "more than once" "x" "aa")
      (funcall refused "already has that text" "one" "one")
      (funcall refused "Say which text" "one")
      (funcall refused "too long" (make-string 200001 ?x) "one")
      (funcall refused "outside of the project" "x" "y" nil "../b.el")
      (funcall refused "outside of the project" "x" "y" nil "/etc/passwd")
      (funcall refused "another machine" "x" "y" nil "/ssh:host:/x")
      (funcall refused "version control" "x" "" nil ".git/hooks/pre-commit")
      (make-directory ".GIT/hooks" t)
      (funcall refused "version control" "x" "" nil ".GIT/hooks/pre-commit")
      (funcall refused "encrypted" "x" "" nil "a.gpg")
      (funcall refused "folder of no/b.el does not exist" "x" "" nil "no/b.el")
      (funcall refused "is not a file" "x" "y" nil ".")
      (make-symbolic-link "/etc/passwd" "link.el")
      (funcall refused "outside of the project" "x" "root" nil "link.el")
      (funcall refused "visits no file" "x" "y" nil "*Messages*")
      (let ((indirect (make-indirect-buffer (current-buffer) "part")))
        (unwind-protect (funcall refused "shows a part of a.el" "x" "one" nil "part")
          (kill-buffer indirect)))
      (let ((contexture-tool-project nil))
        (funcall refused "has no project" "x" "one"))
      (setq buffer-read-only t)
      (funcall refused "a.el is read-only" "x" "one")
      (setq buffer-read-only nil)
      (contexture-tools-change-tests--propose "x" "one")
      (should (string-match-p "already been proposed"
                              (error-message-string
                               (should-error (contexture-tools-change-tests--propose
                                              "y" "one")))))
      (contexture-review-reject))))

(ert-deftest contexture-tools-change-opens-files-without-questions ()
  (contexture-tools-change-tests--with ""
    (llm-ert-write-file
     "b.el" ";; -*- eval: (error \"Run\"); fill-column: 33; my-x: 1 -*-\n(b)\n")
    (let ((end (contexture-tools-change-tests--propose "(c)" "(b)" nil "b.el")))
      (with-current-buffer (find-buffer-visiting "b.el")
        (should (= fill-column 33))
        (should-not (boundp 'my-x))
        (should (contexture-review--open))
        (funcall end)
        (should-not (contexture-review--open))))
    (should-not contexture-tools-change-tests--told)
    ;; What cannot be proposed leaves no buffer.
    (llm-ert-write-file "c.el" "x\n")
    (contexture-tools-change-tests--refused "not in c.el" "y" "z" nil "c.el")
    (should-not (find-buffer-visiting "c.el"))
    ;; A new file.
    (contexture-tools-change-tests--propose "(new)\n" nil nil "d.el")
    (with-current-buffer (find-buffer-visiting "d.el")
      (contexture-review-accept)
      (should (equal (buffer-string) "(new)\n"))
      (set-buffer-modified-p nil))
    (should (string-prefix-p "The user accepted the change to d.el."
                             (car contexture-tools-change-tests--told)))))

(ert-deftest contexture-tools-change-ends-with-its-buffer ()
  (contexture-tools-change-tests--with "one\n"
    (llm-ert-write-file "b.el" "one\n")
    (contexture-tools-change-tests--propose "two" "one" nil "b.el")
    (kill-buffer (find-buffer-visiting "b.el"))
    (should (equal contexture-tools-change-tests--told '(nil "The user closed b.el")))
    (should-not (contexture-review--open))))

(ert-deftest contexture-tools-change-shows-what-cannot-be-seen ()
  (contexture-tools-change-tests--with "one\n"
    (contexture-tools-change-tests--propose "t\u202ewo\u0007\n" "one\n")
    (let ((part (car (contexture-review--parts (car (contexture-review--open))))))
      (should (equal (substring-no-properties (overlay-get part 'after-string))
                     "t\\u{202e}wo\\u{7}\n")))
    (contexture-review-accept)
    (should (equal (buffer-string) "t\u202ewo\u0007\n"))))

(ert-deftest contexture-tools-change-asks-in-its-place-only ()
  (contexture-tools-test-with
      (contexture-tools-test-calling
       "propose_edit" "{\"file\": \"a.txt\", \"old\": \"one\", \"new\": \"two\"}")
    (contexture-test-visiting (contexture-test-file "a.txt" "one")
      (contexture-tools-test-on t)
      (should-not (member "propose_edit" (contexture-tools-test-offered)))
      (contexture-tools-test-on "propose_edit")
      (let (answer)
        (contexture-request-async 'chat '(:content "x")
                                  :success (lambda (result) (setq answer result)))
        (llm-ert-wait-for (contexture-review--open))
        (should (equal (buffer-string) "one\n"))
        (contexture-review-accept)
        (llm-ert-wait-for answer)
        (let ((call (car (plist-get answer :tool-calls))))
          (should (eq (plist-get call :outcome) :done))
          (should (string-prefix-p "The user accepted the change to a.txt."
                                   (plist-get call :text)))))
      (should (equal (buffer-string) "two\n"))
      (set-buffer-modified-p nil))))

(ert-deftest contexture-tools-change-is-withdrawn-with-the-turn ()
  (contexture-tools-test-with
      '(((call "propose_edit" "{\"file\": \"a.txt\", \"old\": \"one\", \"new\": \"two\"}")))
    (contexture-test-visiting (contexture-test-file "a.txt" "one")
      (contexture-tools-test-on "propose_edit")
      (let* (done
             (id (contexture-request-async 'chat '(:content "x")
                                           :error (lambda (problem) (setq done problem)))))
        (llm-ert-wait-for (contexture-review--open))
        (contexture-request 'cancel (list :id id))
        (llm-ert-wait-for (and done (not (contexture-review--open)))))
      (should (equal (buffer-string) "one\n")))))

(ert-deftest contexture-tools-change-names-keys-that-work-where-the-user-is ()
  (contexture-tools-change-tests--with "one\n"
    (cl-flet ((told ()
                (contexture-test-message "goes there, where C-c C-c accepts it"
                  (contexture-tools-change-tests--propose "two\n" "one\n"))))
      (save-window-excursion
        ;; In a conversation, that key goes to the next message.
        (let ((file (current-buffer)))
          (with-temp-buffer
            (use-local-map contexture-conversation-mode-map)
            (set-window-buffer nil (current-buffer))
            (with-current-buffer file
              (should (string-search "; M-x contexture-review-next goes there" (told)))
              (contexture-review-reject)))
          (set-window-buffer nil file)
          (should (string-search "; C-c C-n goes there" (told)))
          (contexture-review-reject))))))

;;;; Which commands may be run

(ert-deftest contexture-tools-change-lists-the-commands-that-the-user-chose ()
  (contexture-tools-change-tests--with "one\n"
    (let ((contexture-tools-commands '(("test" . "make test ")))
          (safe-local-variable-values nil)
          (listed #'contexture-tools-change--list-commands))
      (should (equal (funcall listed) "test: make test"))
      (setq-local compile-command "make mine")
      (should (equal (funcall listed) "test: make test\ncompile: make mine"))
      ;; What a file of the project sets is not the user's choice.
      (setq-local file-local-variables-alist '((compile-command . "make mine")))
      (should (equal (funcall listed) "test: make test"))
      (push '(compile-command . "make mine") safe-local-variable-values)
      (should (equal (funcall listed) "test: make test\ncompile: make mine"))
      (setq contexture-tools-commands nil)
      (kill-local-variable 'compile-command)
      (should (equal (funcall listed) "the user has set no command for this project"))
      (llm-ert-write-file "Makefile" "all:\n")
      (should (string-prefix-p "compile: make" (funcall listed)))
      (dolist (command '("test" "make test; rm x" "make  test"))
        (should-error (contexture-tools-change--run-named #'ignore command))))))

;;;; Running a command

(defmacro contexture-tools-change-tests--with-server (&rest body)
  "Run BODY with a server, in a project that is this test's directory."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (let ((contexture-tool-project llm-ert-directory)
           (contexture-tools-change-tests--told nil))
       ,@body)))

(defun contexture-tools-change-tests--run (command)
  "Run COMMAND; return what the model is told."
  (setq contexture-tools-change-tests--told nil)
  (contexture-tools-change--run #'contexture-tools-change-tests--tell command)
  (llm-ert-wait-for contexture-tools-change-tests--told)
  (or (car contexture-tools-change-tests--told)
      (error (cadr contexture-tools-change-tests--told))))

(defun contexture-tools-change-tests--output ()
  "Return the buffer of the command's output."
  (cl-find-if (lambda (buffer)
                (string-prefix-p "*contexture: command in " (buffer-name buffer)))
              (buffer-list)))

(ert-deftest contexture-tools-change-runs-commands ()
  (contexture-tools-change-tests--with-server
    (should (equal (contexture-tools-change-tests--run "echo hi; exit 3")
                   "echo hi; exit 3\nended with exit status 3.\nOutput:\nhi\n"))
    (should (equal (contexture-tools-change-tests--run "true")
                   "true\nended with exit status 0.\nIt printed nothing."))
    ;; It cannot wait for input, and runs in the project's folder.
    (should (string-search "Output:\nread: \n" (contexture-tools-change-tests--run
                                                "read line; echo \"read: $line\"")))
    (should (string-search (directory-file-name llm-ert-directory)
                           (contexture-tools-change-tests--run "pwd")))
    (should (string-search "ended by signal 9"
                           (contexture-tools-change-tests--run "kill -9 $$")))
    (should-not (get-buffer-window (contexture-tools-change-tests--output)))
    (dolist (command '("" "  " "true\nfalse" "echo \u202e"))
      (should-error (contexture-tools-change--run #'ignore command)))))

(ert-deftest contexture-tools-change-shows-the-end-of-long-output ()
  (contexture-tools-change-tests--with-server
    (let* ((contexture-tools-change--most-kept 30000)
           (told (contexture-tools-change-tests--run "seq 1 100000")))
      (should (string-search "The end of the output:\n" told))
      (should (string-suffix-p "\n99999\n100000\n" told))
      (should (< (length told) 21000))
      (should (< (buffer-size (contexture-tools-change-tests--output)) 70000)))))

(ert-deftest contexture-tools-change-takes-lines-without-end ()
  (contexture-tools-change-tests--with-server
    (dolist (command '("head -c 300000 /dev/zero | tr '\\0' ' '"
                       "head -c 300000 /dev/zero | tr '\\0' /"
                       "for i in $(seq 2000); do printf 'at f (a.c:1:1)'; done"
                       "seq 3000 | while read -r i; do printf '%s' \"$i \"; done"))
      (let ((told (contexture-tools-change-tests--run
                   (concat command "; echo; echo 'a.c:1: error: bad'")))
            (lengths nil))
        (should (string-match-p "ended with exit status 0\\.\n[0-9]+ failures?; " told))
        (should (string-suffix-p "\na.c:1: error: bad\n" told))
        (with-current-buffer (contexture-tools-change-tests--output)
          (goto-char (point-min))
          (while (not (eobp))
            (push (- (line-end-position) (point)) lengths)
            (forward-line))
          (should (<= (apply #'max lengths) (1+ contexture-tools-change--longest-line))))))
    ;; No other line is changed.
    (should (string-suffix-p (format "\n%s\nz\n" (make-string 1000 ?y))
                             (contexture-tools-change-tests--run
                              "head -c 1000 /dev/zero | tr '\\0' y; echo; echo z")))))

(ert-deftest contexture-tools-change-tells-without-a-server ()
  (let ((contexture-server-command '("/nonexistent/contexture")))
    (contexture-tools-change-tests--with "x"
      (should (string-search "- a.c:1: error: bad"
                             (contexture-tools-change-tests--run
                              "echo 'a.c:1: error: bad'"))))))

(ert-deftest contexture-tools-change-stops-commands ()
  (contexture-tools-change-tests--with-server
    (let ((contexture-tools-command-seconds 0)
          (contexture-tools-change--grace 0))
      (should (string-search "It was stopped after 0 seconds, and ended by signal"
                             (contexture-tools-change-tests--run "sleep 1000")))
      ;; One that ignores the interrupt is killed, with all that it started.
      (setq contexture-tools-command-seconds 600
            contexture-tools-change-tests--told nil)
      (let ((stop (contexture-tools-change--run
                   #'contexture-tools-change-tests--tell
                   "trap '' INT; echo ready; while :; do sleep 1000; done")))
        (llm-ert-wait-for (with-current-buffer (contexture-tools-change-tests--output)
                                   (string-search "\nready\n" (buffer-string))))
        (funcall stop))
      (llm-ert-wait-for contexture-tools-change-tests--told)
      (should (string-search "ended by signal 9" (car contexture-tools-change-tests--told))))
    (let ((contexture-tools-change-tests--told nil)
          (stop (contexture-tools-change--run #'contexture-tools-change-tests--tell
                                              "sleep 1000")))
      (should-error (contexture-tools-change--run #'ignore "true"))
      (funcall stop)
      (llm-ert-wait-for contexture-tools-change-tests--told)
      (should (string-search "It was cancelled" (car contexture-tools-change-tests--told))))
    (let ((contexture-tools-change-tests--told nil)
          (kill-buffer-query-functions nil))
      (contexture-tools-change--run #'contexture-tools-change-tests--tell "sleep 1000")
      (kill-buffer (contexture-tools-change-tests--output))
      (should (equal contexture-tools-change-tests--told '(nil "The user closed its output"))))
    (should-not (cl-find #'contexture-tools-change--stop (contexture-test-timers)
                         :key #'timer--function))))

(ert-deftest contexture-tools-change-puts-failures-into-the-context ()
  (contexture-tools-change-tests--with-server
    (contexture-test-file "a.c" "one" "two" "three")
    (contexture-test-visiting (contexture-test-file "b.c" "one")
      (insert "x")
      (let ((told (contexture-tools-change-tests--run
                   "printf 'a.c:2: error: bad\\n  here\\na.c:3:1: warning: odd\\n'; exit 1")))
        (should (string-search "ended with exit status 1.\n2 failures; the context has them:\n\
- a.c:2: error: bad\n- a.c:3:1: warning: odd\n" told))
        (should (string-search "not as they are in Emacs: b.c" told)))
      (set-buffer-modified-p nil))
    (with-current-buffer (contexture-tools-change-tests--output)
      (let ((items (contexture-test-items)))
        (should (equal (mapcar (lambda (it) (plist-get it :content)) items)
                       '("a.c:2: error: bad\n  here\n" "a.c:3:1: warning: odd\n")))
        (should (equal (contexture-test-metadata (car items) :origin :start-line :filename)
                       (list :compilation 2 (concat llm-ert-directory "a.c"))))))
    ;; The next run replaces them, also one without failures.
    (contexture-tools-change-tests--run "echo 'a.c:1: error: worse'")
    (with-current-buffer (contexture-tools-change-tests--output)
      (should (equal (plist-get (contexture-test-only-item) :content) "a.c:1: error: worse\n"))
      (contexture-tools-change-tests--run "true")
      (should-not (contexture-test-items)))))

(ert-deftest contexture-tools-change-asks-before-it-runs ()
  (let ((answers (contexture-tools-test-calling "run_command"
                                                "{\"command\": \"echo ran >> log\"}")))
    (contexture-tools-test-with (append answers answers)
      (let ((contexture-tools-commands '(("log" . "echo ran >> log")))
            (log (concat llm-ert-directory "log")))
        (contexture-tools-test-on "run_command")
        (contexture-conversation-test-open "talk")
        (dolist (decision '(refuse once))
          (contexture-conversation-test-type "Run it")
          (contexture-conversation-send)
          (contexture-conversation-test-await-request)
          (should (string-search "echo ran >> log" (contexture-conversation-test-shown)))
          (should-not (file-exists-p log))
          (contexture-conversation-approve decision)
          (contexture-conversation-test-wait))
        (should (file-exists-p log))))))

(provide 'contexture-tools-change-tests)
;;; contexture-tools-change-tests.el ends here
