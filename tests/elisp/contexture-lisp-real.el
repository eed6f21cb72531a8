;;; contexture-lisp-real.el --- With a real Lisp and its client  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loaded by contexture-lisp-tests.el into an Emacs of its own, with SLIME
;; or SLY on the `load-path'; LISP_CLIENT says which.  There is one SBCL
;; for all tests, and one server of Contexture beside it, to whose REPL
;; the client connects as well.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-lisp)
(require 'contexture-menu)

(defvar inferior-lisp-program)
(defvar slime-repl-history-file)
(defvar sly-command-switch-to-existing-lisp)
(defvar sly-mrepl-history-file-name)

(defconst contexture-lisp-real-name (intern (getenv "LISP_CLIENT"))
  "The client under test: `slime' or `sly'.")

(defun contexture-lisp-real-is (name)
  "Whether the client under test is NAME."
  (eq contexture-lisp-real-name name))

(defun contexture-lisp-real-do (command &rest arguments)
  "Call COMMAND of our package for the client under test with ARGUMENTS."
  (apply (intern (format "contexture-%s-%s" contexture-lisp-real-name command))
         arguments))

(defun contexture-lisp-real-call (function &rest arguments)
  "Call FUNCTION of the client under test, without its prefix, with ARGUMENTS."
  (apply (intern (format "%s-%s" contexture-lisp-real-name function)) arguments))

(require contexture-lisp-real-name)
(setq inferior-lisp-program "sbcl --noinform --no-sysinit --no-userinit"
      slime-repl-history-file nil
      sly-mrepl-history-file-name (expand-file-name (make-temp-name "history")
                                                     temporary-file-directory)
      kill-buffer-query-functions nil)
(contexture-lisp-real-call 'setup (if (contexture-lisp-real-is 'slime)
                                      '(slime-fancy)
                                    '(sly-fancy)))

(defconst contexture-lisp-real-client
  (symbol-value (intern (format "contexture-%s--client" contexture-lisp-real-name))))

(defconst contexture-lisp-real-file
  (expand-file-name (make-temp-name "shapes") temporary-file-directory)
  "The source that the Lisp has compiled, without its extension.")

(defconst contexture-lisp-real-source
  "(defpackage :shapes (:use :cl) (:export #:area))
(in-package :shapes)

(defun total (numbers)
  \"The sum of NUMBERS, \\\"λ\\\" included.\"
  (reduce #'+ numbers))

(defun mean (numbers)
  (let ((count (length numbers)))
    (/ (total numbers) count)))

(defgeneric area (shape)
  (:documentation \"How much SHAPE covers.\"))

(defmethod area ((shape list))
  (apply #'* shape))

(defmacro define-scale (name factor)
  `(defun ,name (number) (* number ,factor)))
(define-scale double 2)
(setf (documentation 'double 'function) \"Twice NUMBER.\")
"
  "What is in it.")

;;;; The Lisp

(defmacro contexture-lisp-real-until (condition)
  "Wait until CONDITION holds; a Lisp may take long to start."
  `(let ((deadline (+ (float-time) 60)))
     (while (not (or ,condition (> (float-time) deadline)))
       (accept-process-output nil 0.02))
     (should ,condition)))

(defun contexture-lisp-real-connection ()
  "Return the connection to SBCL, starting it if that was not done yet."
  (or (car (contexture-lisp--connections contexture-lisp-real-client))
      (progn
        ;; An earlier one may just be ending.
        (contexture-lisp-real-until (not (get-buffer-process "*inferior-lisp*")))
        (save-window-excursion
          (funcall contexture-lisp-real-name)
          (contexture-lisp-real-until
           (and (contexture-lisp--connections contexture-lisp-real-client)
                (contexture-lisp-real-repl)
                (with-current-buffer (contexture-lisp-real-repl)
                  (contexture-lisp--prompt-before contexture-lisp-real-client
                                                  (point-max))))))
        ;; When SLY's REPL ends, that of its process cannot say so in text that is read-only
        ;; by then; ERT takes that error for the test's.
        (when (contexture-lisp-real-is 'sly)
          (set-process-sentinel (get-buffer-process (contexture-lisp-real-repl)) #'ignore))
        (let ((file (concat contexture-lisp-real-file ".lisp")))
          (with-temp-file file (insert contexture-lisp-real-source))
          (contexture-lisp-real-eval `(cl:load (cl:compile-file ,file))))
        (car (contexture-lisp--connections contexture-lisp-real-client)))))

(defun contexture-lisp-real-eval (form)
  "Return the value of FORM in the image."
  (contexture-lisp-real-call 'eval form))

(defun contexture-lisp-real-repl ()
  "Return the REPL of SBCL, or nil."
  (when-let* ((connection
               (car (contexture-lisp--connections contexture-lisp-real-client))))
    (contexture-lisp--ask contexture-lisp-real-client 'repl connection)))

(defun contexture-lisp-real-prompts ()
  "Return how many prompts this REPL has shown."
  (let ((position (point-max)) (count 0))
    (while (setq position (contexture-lisp--prompt-before
                           contexture-lisp-real-client position))
      (cl-incf count))
    count))

(defun contexture-lisp-real-type (text &optional until)
  "Type TEXT into the REPL; wait for the next prompt or until UNTIL returns t."
  (with-current-buffer (contexture-lisp-real-repl)
    (let ((prompts (contexture-lisp-real-prompts)))
      (goto-char (point-max))
      (insert-and-inherit text) ; as keys do
      (if (contexture-lisp-real-is 'slime)
          (funcall 'slime-repl-return)
        (funcall 'sly-mrepl-return))
      (contexture-lisp-real-until
       (if until (funcall until) (> (contexture-lisp-real-prompts) prompts))))))

(defun contexture-lisp-real-debugger ()
  "Return the debugger's buffer, or nil."
  (cl-find (contexture-lisp--client-debugger-mode contexture-lisp-real-client)
           (buffer-list)
           :key (lambda (buffer) (buffer-local-value 'major-mode buffer))))

(defun contexture-lisp-real-abort ()
  "Leave the debugger."
  (with-current-buffer (contexture-lisp-real-debugger)
    (funcall (if (contexture-lisp-real-is 'slime) 'sldb-abort 'sly-db-abort)))
  (contexture-lisp-real-until (not (contexture-lisp-real-debugger))))

(defmacro contexture-lisp-real-with-lisp (&rest body)
  "Run BODY in a buffer of a server, with SBCL connected."
  (declare (indent 0) (debug t))
  `(progn
     (contexture-lisp-real-connection) ; what a test starts, ends with it
     (contexture-test-with-server
       (save-window-excursion
         (contexture-test-visiting (contexture-test-file "notes.txt" "one")
           ,@body)
         (contexture-lisp-real-settle)))))

(defun contexture-lisp-real-settle ()
  "Wait until the client awaits no answer of the Lisp.
It handles an answer in the buffer that asked, so that one must not be
killed before.  Each test with a Lisp ends with this."
  (contexture-lisp-real-until
   (cl-notany (apply-partially #'contexture-lisp-real-call 'rex-continuations)
              (contexture-lisp--connections contexture-lisp-real-client))))

(defun contexture-lisp-real-added (count)
  "Wait until this context has COUNT items, and return them."
  (llm-ert-wait-for (>= (length (contexture-test-items)) count))
  (let ((items (contexture-test-items)))
    (should (= (length items) count))
    items))

(defun contexture-lisp-real-contents (count)
  "Wait until this context has COUNT items, and return their texts."
  (mapcar (lambda (item) (plist-get item :content)) (contexture-lisp-real-added count)))

;;;; Symbols

(ert-deftest contexture-lisp-real-adds-a-definition ()
  (contexture-lisp-real-with-lisp
    (let ((buffers (buffer-list)))
      (contexture-test-message "Added shapes::total (.*shapes.*:4-6) to buffer notes\\.txt (1 item"
        (contexture-test-at-once
          (contexture-lisp-real-do 'add-symbol "shapes::total")))
      (let ((item (contexture-test-only-item)))
        (should (equal (plist-get item :content)
                       "(defun total (numbers)
  \"The sum of NUMBERS, \\\"λ\\\" included.\"
  (reduce #'+ numbers))\n"))
        (should (eq (plist-get item :state) :fresh))
        (should (equal (contexture-test-metadata item :symbol :origin :filename :start-line
                                                 :end-line :package :arglist :docstring)
                       `("shapes::total" :symbol ,(concat contexture-lisp-real-file ".lisp")
                         4 6 "shapes" "(shapes::total NUMBERS)"
                         "The sum of NUMBERS, \"λ\" included.")))
        (should (string-prefix-p "SBCL 2." (car (contexture-test-metadata item :lisp)))))
      (should-not (cl-find-if #'buffer-file-name
                              (cl-set-difference (buffer-list) buffers))))))

(ert-deftest contexture-lisp-real-definition-is-what-the-buffer-has ()
  (contexture-lisp-real-with-lisp
    (let ((buffer (find-file-noselect (concat contexture-lisp-real-file ".lisp"))))
      (unwind-protect
          (progn
            (with-current-buffer buffer
              (goto-char (point-min))
              (search-forward "(/ (total")
              (replace-match "(* (total")
              (goto-char (point-min)))
            (contexture-lisp-real-do 'add-symbol "shapes::mean")
            (should (string-search "(* (total numbers) count)"
                                   (plist-get (car (contexture-lisp-real-added 1)) :content)))
            (with-current-buffer buffer
              (should (= (point) (point-min)))))
        (with-current-buffer buffer (set-buffer-modified-p nil))
        (kill-buffer buffer)))))

(ert-deftest contexture-lisp-real-asks-which-definition ()
  (contexture-lisp-real-with-lisp
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_prompt choices &rest _)
                 (car (cl-find-if (lambda (choice)
                                    (string-search "METHOD" (upcase (car choice))))
                                  choices)))))
      ;; What only the generic function says comes along, but once.
      (dotimes (_ 2)
        (contexture-test-message "Added shapes:area .*(2 items"
          (contexture-lisp-real-do 'add-symbol "shapes:area"))
        (should (equal (sort (contexture-lisp-real-contents 2) #'string<)
                       '("(defmethod area ((shape list))\n  (apply #'* shape))\n"
                         "(shapes:area SHAPE)\n\nHow much SHAPE covers.\n")))))))

(ert-deftest contexture-lisp-real-adds-what-the-source-does-not-say ()
  (contexture-lisp-real-with-lisp
    (contexture-lisp-real-do 'add-symbol "shapes::double")
    (should (equal (contexture-lisp-real-contents 2)
                   '("(define-scale double 2)\n"
                     "(shapes::double NUMBER)\n\nTwice NUMBER.\n")))
    (contexture-lisp-real-do 'add-symbol "shapes::define-scale")
    (should (string-prefix-p "(defmacro" (nth 2 (contexture-lisp-real-contents 3))))))

(ert-deftest contexture-lisp-real-adds-what-is-known-without-source ()
  (contexture-lisp-real-with-lisp
    (contexture-lisp-real-eval
     '(cl:eval (cl:read-from-string "(defun cl-user::spoken (a &optional b) \"Said only.\" (list a b))")))
    (contexture-lisp-real-do 'add-symbol "cl-user::spoken")
    (let ((item (car (contexture-lisp-real-added 1))))
      (should (equal (plist-get item :content)
                     "(cl-user::spoken A &OPTIONAL B)\n\nSaid only.\n"))
      (should (eq (plist-get item :type) :text)))))

(ert-deftest contexture-lisp-real-says-what-it-does-not-know ()
  (contexture-lisp-real-with-lisp
    (contexture-test-message "SBCL .* knows no definition of cl-user::nothing-at-all"
      (contexture-lisp-real-do 'add-symbol "cl-user::nothing-at-all"))
    (contexture-test-message "knows no definition of no-package:x\"y"
      (contexture-lisp-real-do 'add-symbol "no-package:x\"y"))
    (contexture-test-user-error "No symbol" (contexture-lisp-real-do 'add-symbol " "))
    (should-not (contexture-lisp-real-debugger))
    (should-not (contexture-test-items))))

(ert-deftest contexture-lisp-real-completes-symbols ()
  (contexture-lisp-real-with-lisp
    (let (offered)
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (_prompt table &rest _)
                   (setq offered (all-completions "shapes::to" table))
                   "shapes::total")))
        (call-interactively (intern (format "contexture-%s-add-symbol"
                                            contexture-lisp-real-name))))
      (should (equal offered '("shapes::total")))
      (contexture-lisp-real-added 1))))

;;;; History

(ert-deftest contexture-lisp-real-adds-interactions ()
  (contexture-lisp-real-with-lisp
    (contexture-lisp-real-type "(progn (format t \"hello~%wörld~%\") (values 1 (list 2 3)))")
    (contexture-lisp-real-type "(values)")
    (contexture-lisp-real-type "(+ 1\n   2)")
    (contexture-test-message "Added 3 interactions to buffer notes\\.txt (3 items"
      (contexture-test-at-once (contexture-lisp-real-do 'add-history 3)))
    (pcase-let ((`(,first ,second ,third) (contexture-lisp-real-added 3)))
      (should (eq (plist-get first :type) :repl-history))
      (should (equal (contexture-test-metadata first :origin :prompt :output :error)
                     '(:repl "CL-USER>" "hello\nwörld" nil)))
      (should (string-match-p "\\`1.*\n(2 3)\\'"
                              (car (contexture-test-metadata first :value))))
      (should (string-match-p "\\`CL-USER> (progn .*\nhello\nwörld\n=> 1.*\n(2 3)\n\\'"
                              (plist-get first :content)))
      (should (string-match-p "\\`CL-USER> (values)\n; No values?\n\\'"
                              (plist-get second :content)))
      (should (equal (contexture-test-metadata third :input) '("(+ 1\n   2)")))
      (should (string-match-p "\\`CL-USER> (\\+ 1\n   2)\n=> 3.*\n\\'"
                              (plist-get third :content))))
    (contexture-test-message "already has this interaction"
      (contexture-lisp-real-do 'add-history 1))
    (contexture-lisp-real-type "(list 4)")
    (contexture-lisp-real-do 'add-history 3)
    (should (string-match-p "=> (4)" (plist-get (car (last (contexture-lisp-real-added 4)))
                                                :content)))
    (with-current-buffer (contexture-lisp-real-repl)
      (goto-char (point-max))
      (insert-and-inherit "(not sent")
      (should (equal (plist-get (car (contexture-lisp--interactions
                                      contexture-lisp-real-client 1))
                                :input)
                     "(list 4)"))
      (delete-char -9))
    (contexture-test-user-error "at least one" (contexture-lisp-real-do 'add-history 0))))

(ert-deftest contexture-lisp-real-adds-what-was-read-and-what-failed ()
  (contexture-lisp-real-with-lisp
    (let ((prompts (with-current-buffer (contexture-lisp-real-repl)
                     (contexture-lisp-real-prompts))))
      (contexture-lisp-real-type
       "(progn (format t \"who?\") (finish-output) (read-line))"
       (lambda () (save-excursion (goto-char (point-min))
                                  (re-search-forward "^who\\?" nil t))))
      (contexture-lisp-real-until
       (with-current-buffer (contexture-lisp-real-repl)
         (or (bound-and-true-p slime-repl-read-mode)
             (bound-and-true-p sly-mrepl--read-mark))))
      (contexture-lisp-real-type "Ada" (lambda () (> (contexture-lisp-real-prompts) prompts))))
    (contexture-lisp-real-type "(error \"No ~a\" 'luck)" #'contexture-lisp-real-debugger)
    (contexture-lisp-real-abort)
    (contexture-lisp-real-until
     (with-current-buffer (contexture-lisp-real-repl)
       (save-excursion (goto-char (point-max)) (looking-back "USER> " nil))))
    (contexture-lisp-real-do 'add-history 2)
    (pcase-let ((`(,first ,second) (contexture-lisp-real-added 2)))
      (should (string-match-p "who\\?.*\n?Ada" (car (contexture-test-metadata first :output))))
      (should (string-match-p "\\`\"Ada\"" (car (contexture-test-metadata first :value))))
      (should-not (car (contexture-test-metadata second :value)))
      (should (string-match-p "SIMPLE-ERROR\\|No LUCK"
                              (car (contexture-test-metadata second :error))))
      (should (string-match-p "^; Error: " (plist-get second :content))))))

;;;; Errors

(ert-deftest contexture-lisp-real-adds-an-error ()
  (contexture-lisp-real-with-lisp
    (contexture-test-user-error "No debugger" (contexture-lisp-real-do 'add-error))
    (contexture-lisp-real-type "(shapes::mean '(1 2 \"x\"))" #'contexture-lisp-real-debugger)
    (unwind-protect
        (progn
          (lisp-mode) ; its syntax is another, and nothing may depend on that
          (contexture-test-message "Added the error at .*shapes.*:10 to buffer notes"
            (contexture-test-at-once (contexture-lisp-real-do 'add-error)))
          (let* ((item (car (contexture-lisp-real-added 1)))
                 (content (plist-get item :content)))
            (should (eq (plist-get item :type) :error))
            (should (eq (plist-get item :state) :fresh))
            (should (string-prefix-p "The value\n  \"x\"\nis not of type\n  NUMBER" content))
            (should (string-match-p "^  \\[Condition of type TYPE-ERROR\\]$" content))
            (should (string-match-p "^  0: \\[RETRY\\] Retry " content))
            (should (string-match-p "^  [0-9]+: (SHAPES::MEAN (1 2 \"x\"))\n       at .*\\.lisp:10: \
(/ (total numbers) count)))\n       NUMBERS = (1 2 \"x\")$" content))
            (should (string-match-p "\nSource:\n.*\\.lisp:8\n(defun mean (numbers)\n  (let .*\n\
 *(/ (total numbers) count)))\n\\'" content))
            (should-not (string-match-p "^  [0-9]+: .*\\(?:SWANK\\|SLYNK\\)" content))
            (should (equal (contexture-test-metadata item :origin :condition-type :start-line)
                           '(:debugger "Condition of type TYPE-ERROR" 10)))
            (should (= 3 (length (seq-take (car (contexture-test-metadata item :frames)) 3)))))
          (contexture-lisp-real-do 'add-error 2)
          (should (string-match-p "^  1: .*\n  and more\n"
                                  (plist-get (nth 1 (contexture-lisp-real-added 2)) :content)))
          ;; What has led to it is history, although nothing came of it yet.
          (contexture-lisp-real-do 'add-history 1)
          (should (string-match-p "mean '(1 2 \"x\"))\n; Error: "
                                  (plist-get (nth 2 (contexture-lisp-real-added 3)) :content))))
      (contexture-lisp-real-abort))))

;;;; Inspectors and notes

(ert-deftest contexture-lisp-real-adds-what-is-inspected ()
  (contexture-lisp-real-with-lisp
    (contexture-test-user-error "has no inspector open" (contexture-lisp-real-do 'add-inspector))
    (contexture-lisp-real-call 'inspect "'(apple \"pear\")")
    (contexture-lisp-real-until
     (cl-find (contexture-lisp--client-inspector-mode contexture-lisp-real-client)
              (buffer-list)
              :key (lambda (buffer) (buffer-local-value 'major-mode buffer))))
    (contexture-lisp-real-do 'add-inspector)
    (let ((item (car (contexture-lisp-real-added 1))))
      (should (string-match-p "APPLE" (plist-get item :content)))
      (should (equal (contexture-test-metadata item :origin) '(:inspector))))))

(ert-deftest contexture-lisp-real-adds-a-note ()
  (contexture-lisp-real-with-lisp
    (let ((file (contexture-test-file "odd.lisp" "(in-package :cl-user)" ""
                                      "(defun odd (x)" "  (+ x undefined-thing))")))
      (with-current-buffer (find-file-noselect file)
        (contexture-test-user-error "has no note on this line" (contexture-lisp-real-do 'add-note))
        (goto-char (point-max))
        (forward-line -1)
        (contexture-lisp-real-call 'compile-defun)
        (contexture-lisp-real-until
         (cl-some (lambda (overlay)
                    (overlay-get overlay (contexture-lisp--client-note-property
                                          contexture-lisp-real-client)))
                  (overlays-in (point-min) (point-max))))
        (search-forward "undefined")
        (contexture-lisp-real-do 'add-note)
        (let ((item (car (contexture-lisp-real-added 1))))
          (should (eq (plist-get item :type) :error))
          (should (string-match-p "warning: undefined variable: .*UNDEFINED-THING"
                                  (plist-get item :content)))
          (should (equal (contexture-test-metadata item :origin :filename)
                         (list :diagnostic file))))
        (contexture-lisp-real-settle)
        (set-buffer-modified-p nil)
        (kill-buffer)))))

;;;; Modes

(defun contexture-lisp-real-key ()
  "Return what the key of the mode is bound to behind the client's prefix."
  (lookup-key (contexture-lisp--ask contexture-lisp-real-client 'prefix-map)
              (kbd contexture-lisp-key)))

(ert-deftest contexture-lisp-real-mode-restores-what-the-key-was ()
  (contexture-lisp-real-with-lisp
    (let* ((contexture-lisp-key "I")
           (before (contexture-lisp-real-key)))
      (should (commandp before))
      (contexture-lisp-real-do 'mode 1)
      (should (keymapp (contexture-lisp-real-key)))
      (contexture-lisp-real-do 'mode -1)
      (should (eq (contexture-lisp-real-key) before)))))

(ert-deftest contexture-lisp-real-mode-leaves-no-trace ()
  (contexture-lisp-real-with-lisp
    (let* ((map (contexture-lisp--ask contexture-lisp-real-client 'prefix-map))
           (before (copy-tree map))
           (hook (contexture-lisp--client-repl-hook contexture-lisp-real-client))
           (functions (copy-sequence (and (boundp hook) (symbol-value hook)))))
      (contexture-lisp-real-do 'mode 1)
      (should (eq (lookup-key (contexture-lisp-real-key) "s")
                  (intern (format "contexture-%s-add-symbol" contexture-lisp-real-name))))
      (contexture-lisp-real-do 'mode 1)
      (contexture-lisp-real-do 'mode -1)
      (should (equal map before))
      (should (equal functions (and (boundp hook) (symbol-value hook))))
      (contexture-lisp-real-do 'mode -1)
      (should (equal map before))
      (with-current-buffer (contexture-lisp-real-repl)
        (should-not contexture-lisp--agent-mode)))))

(defmacro contexture-lisp-real-with-agent (&rest body)
  "Run BODY in a REPL of the client whose other end is Contexture."
  (declare (indent 0) (debug t))
  `(let* ((server (make-process
                   :name "agent" :buffer (generate-new-buffer " agent") :noquery t
                   :command `(,contexture-test-binary "--ephemeral"
                              "serve" "--tcp" "127.0.0.1:0"
                              ;; SLIME asks if its own release is another.
                              ,@(and (boundp 'slime-protocol-version)
                                     (list "--swank-version"
                                           (symbol-value 'slime-protocol-version))))
                   :stderr (generate-new-buffer " agent errors")))
          (port (contexture-lisp-real-port server)))
     (unwind-protect
         (save-window-excursion
           (contexture-lisp-real-call 'connect "127.0.0.1" port)
           (contexture-lisp-real-until (contexture-lisp-real-agent))
           (with-current-buffer (contexture-lisp-real-agent) ,@body))
       (delete-process server)
       ;; A client cannot take that a REPL is killed while its connection closes.
       (contexture-lisp-real-until
        (equal (contexture-lisp--ask contexture-lisp-real-client 'connections)
               (contexture-lisp--connections contexture-lisp-real-client)))
       (contexture-lisp-real-call 'select-connection (contexture-lisp-real-connection)))))

(defmacro contexture-lisp-real-with-mode-and-agent (&rest body)
  "Turn the mode on, and run BODY at the prompt of an agent that comes later."
  (declare (indent 0) (debug t))
  `(contexture-lisp-real-with-lisp
     (contexture-lisp-real-do 'mode 1)
     (unwind-protect
         (contexture-lisp-real-with-agent
           (contexture-lisp-real-until contexture-lisp--agent-mode)
           (goto-char (point-max))
           ,@body)
       (contexture-lisp-real-do 'mode -1))))

(defun contexture-lisp-real-agent ()
  "Return the REPL that is open at the agent, or nil."
  (cl-find-if (lambda (buffer)
                (with-current-buffer buffer
                  (and (contexture-lisp--agent-p contexture-lisp-real-client)
                       (contexture-lisp--prompt-before contexture-lisp-real-client
                                                       (point-max)))))
              (buffer-list)))

(defun contexture-lisp-real-port (server)
  "Return the port that the process SERVER says that it listens on."
  (let (port)
    (contexture-lisp-real-until
     (with-current-buffer (process-buffer server)
       (goto-char (point-min))
       (and (re-search-forward "^\\([0-9]+\\)$" nil t)
            (setq port (string-to-number (match-string 1))))))
    (should (process-live-p server))
    port))

(ert-deftest contexture-lisp-real-mode-frees-agents-only ()
  (contexture-lisp-real-with-lisp
    (contexture-lisp-real-with-agent
      (let ((comma (key-binding ","))
            (space (key-binding " "))
            (shown (contexture-lisp--ask contexture-lisp-real-client 'autodoc)))
        (should-not (eq comma 'self-insert-command))
        (contexture-lisp-real-do 'mode 1)
        (should contexture-lisp--agent-mode)
        (should (eq (key-binding ",")
                    (if (contexture-lisp-real-is 'slime) comma 'contexture-lisp-comma)))
        (should contexture-mention-mode)
        (should (eq (key-binding " ") 'self-insert-command))
        (should (eq (key-binding "\t") 'completion-at-point))
        (should-not (contexture-lisp--ask contexture-lisp-real-client 'autodoc))
        (with-current-buffer (contexture-lisp-real-repl)
          (should-not contexture-lisp--agent-mode)
          (should (eq (key-binding ",") comma)))
        (contexture-lisp-real-do 'mode -1)
        (should (eq (key-binding ",") comma))
        (should (eq (key-binding " ") space))
        (should (eq (contexture-lisp--ask contexture-lisp-real-client 'autodoc) shown))
        (should-not contexture-lisp--agent-mode)
        (should-not (local-variable-p 'contexture-lisp--autodoc))))))

(ert-deftest contexture-lisp-real-mode-frees-agents-that-come-later ()
  (contexture-lisp-real-with-mode-and-agent))

(ert-deftest contexture-lisp-real-agents-are-of-the-project-of-who-connected ()
  (contexture-lisp-real-with-lisp
    (contexture-lisp-real-do 'mode 1)
    (unwind-protect
        (dolist (name '("one" "two"))     ; SLIME uses the REPL of the first again
          (contexture-test-file (concat name "/.git/config") "")
          (let ((folder (expand-file-name (concat name "/"))))
            (let ((default-directory folder))
              (contexture-lisp-real-with-agent
                (contexture-lisp-real-until (file-equal-p default-directory folder))
                (should (equal (contexture-lisp-real-eval
                                (list (intern (format "%s:default-directory"
                                                      (contexture-lisp--client-prefix
                                                       contexture-lisp-real-client)))))
                               folder))))))
      (contexture-lisp-real-do 'mode -1))))

(ert-deftest contexture-lisp-real-errors-name-files-as-their-project-does ()
  (contexture-lisp-real-with-lisp
    (contexture-test-file "p/.git/config" "")
    (let ((file (contexture-test-file "p/sub/broken.lisp" "(in-package :cl-user)"
                                      "(defun broken (x)" "  (car x))")))
      (contexture-lisp-real-eval
       `(cl:load (cl:compile-file ,file :output-file ,(concat file ".fasl"))))
      (contexture-lisp-real-type "(cl-user::broken 5)" #'contexture-lisp-real-debugger)
      (unwind-protect
          (contexture-test-visiting file
            (contexture-lisp-real-do 'add-error)
            (let* ((item (car (contexture-lisp-real-added 1)))
                   (text (plist-get item :content)))
              (should (string-match-p "^       at sub/broken\\.lisp:3: (car x))$" text))
              (should (string-match-p "^sub/broken\\.lisp:2$" text))
              (should (equal (contexture-test-metadata item :language :project)
                             (list "lisp" (expand-file-name "p/" llm-ert-directory))))))
        (contexture-lisp-real-abort)))))

(ert-deftest contexture-lisp-real-source-buffers-keep-their-lisp ()
  (contexture-lisp-real-with-lisp
    (let ((lisp (contexture-lisp-real-connection))
          (default (intern (format "%s-default-connection" contexture-lisp-real-name))))
      (contexture-lisp-real-call 'select-connection lisp)
      (contexture-lisp-real-do 'mode 1)
      (unwind-protect
          (contexture-lisp-real-with-agent
            (contexture-lisp-real-until (eq (symbol-value default) lisp))
            (let ((contexture-lisp-keep-default nil))
              (contexture-lisp-real-call 'select-connection
                                         (contexture-lisp--ask contexture-lisp-real-client
                                                               'buffer-connection))
              (contexture-lisp--connected contexture-lisp-real-client)
              (accept-process-output nil 0.01)
              (should-not (eq (symbol-value default) lisp))
              ;; What is evaluated there by mistake is told so.
              (contexture-lisp-real-call 'eval-async '(cl:+ 1 2) #'error)
              (contexture-lisp-real-until
               (with-current-buffer "*Messages*"
                 (string-search "this is the connection to Contexture" (buffer-string))))))
        (contexture-lisp-real-do 'mode -1)))))

(ert-deftest contexture-lisp-real-comma-commands-behind-the-prompt ()
  (skip-unless (contexture-lisp-real-is 'sly))
  (contexture-lisp-real-with-mode-and-agent
    (insert-and-inherit "well")
    (let ((last-command-event ?,)) (contexture-lisp-comma 1))
    (should (looking-back "well," (line-beginning-position)))
    (delete-char -5)
    (let (asked)
      (cl-letf (((symbol-function 'sly-mrepl-shortcut)
                 (lambda () (interactive) (setq asked t))))
        (contexture-lisp-comma 1))
      (should asked))
    ;; Its directory can be set, and the next question goes to the same session.
    (cl-letf (((symbol-function 'read-directory-name) (lambda (&rest _) "/")))
      (funcall 'sly-mrepl-set-directory))
    (contexture-lisp-real-until
     (equal (contexture-lisp-real-eval '(slynk:default-directory)) "/"))))

(ert-deftest contexture-lisp-real-completes-mentions-for-agents ()
  (contexture-lisp-real-with-mode-and-agent
    (insert-and-inherit "@note")  ; right behind the prompt
    (contexture-lisp-real-until
     (let ((this-command 'completion-at-point))
       (completion-at-point)
       (looking-back "@notes\\.txt" (line-beginning-position))))))

(ert-deftest contexture-lisp-real-agent-is-no-lisp ()
  (contexture-lisp-real-with-lisp
    (contexture-lisp-real-with-agent
      (should (equal (contexture-lisp--connections contexture-lisp-real-client)
                     (list (contexture-lisp-real-connection))))
      (contexture-test-user-error "conversation with Contexture" (contexture-lisp-real-do 'add-history 1))
      (contexture-lisp-real-do 'add-symbol "shapes::total")
      (contexture-lisp-real-added 1))))

(ert-deftest contexture-lisp-real-generic-commands-find-the-client ()
  (contexture-lisp-real-with-lisp
    (should (contexture-lisp-connected-p))
    (should (contexture-menu--lisp-p))
    (let ((current-prefix-arg 2))
      (contexture-lisp-real-type "1")
      (contexture-lisp-real-type "2")
      (call-interactively #'contexture-lisp-add-history))
    (contexture-lisp-real-added 2)))

(provide 'contexture-lisp-real)
;;; contexture-lisp-real.el ends here
