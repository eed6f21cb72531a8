;;; contexture-ert-model-tests.el --- Tests of models written in Lisp  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A model of a test is asked by Contexture's server, which has its own
;; readers of both interfaces, and by gptel if it is there.

;;; Code:

(require 'contexture-test-helper)

(defun contexture-ert-model-tests--ask (text &rest params)
  "Ask the model TEXT with PARAMS in a session; return the result of the turn."
  (contexture-request 'open-session '(:name "s"))
  (contexture-request 'chat (append (list :session "s" :content text) params)
                      :timeout llm-ert-timeout))

(defun contexture-ert-model-tests--said (result)
  "Return what the model said in RESULT."
  (plist-get result :content))

(defmacro contexture-ert-model-tests--with (answers &rest body)
  "Run BODY with a server and a model that says ANSWERS."
  (declare (indent 1) (debug t))
  `(llm-ert-with-model ,answers
     (let ((contexture-ert-server-command contexture-test-binary))
       (contexture-ert-with-server ,@body))))

(defun contexture-ert-model-tests--as-anthropic ()
  "Have the server ask the test's model through Anthropic's interface."
  (contexture-request
   'configure-provider
   (list :name "claude" :kind :anthropic :model "model" :default t :api-key "none"
         :base-url (llm-ert-url))))

(ert-deftest contexture-ert-model-answers-and-tells-what-it-was-shown ()
  (let ((shown
         (contexture-ert-model-tests--with
             (list "Yes." (lambda (request)
                            (concat "You said: " (plist-get request :prompt))))
           (should (equal (contexture-ert-model-tests--said
                           (contexture-ert-model-tests--ask "Is it λ?"))
                          "Yes."))
           (should (equal (contexture-ert-model-tests--said
                           (contexture-ert-model-tests--ask "Why?"))
                          "You said: Why?")))))
    (should (equal (mapcar (lambda (it) (plist-get it :prompt)) shown)
                   '("Is it λ?" "Why?")))
    (should (equal (mapcar (lambda (it) (plist-get it :role))
                           (plist-get (cadr shown) :messages))
                   '(user assistant user)))))

(defun contexture-ert-model-tests--check-pieces ()
  "Check that the server understands each piece of a model."
  (let* ((result (contexture-ert-model-tests--ask "Read it."))
         (message (car (last (contexture-request 'get-messages '(:session "s"))))))
    (should (equal (plist-get result :content) "Let me see."))
    (should (equal (plist-get (plist-get result :usage) :input) 12))
    (should (equal (plist-get (plist-get result :usage) :output) 5))
    (should (equal (plist-get message :content) "Let me see."))))

(defconst contexture-ert-model-tests--pieces
  '(((thought "They want it read.") "Let me " "see."
     (usage :input 12 :output 5 :cached 4)))
  "Answers with some pieces.")

(ert-deftest contexture-ert-model-speaks-as-openai-does ()
  (contexture-ert-model-tests--with contexture-ert-model-tests--pieces
    (contexture-ert-model-tests--check-pieces)))

(ert-deftest contexture-ert-model-speaks-as-anthropic-does ()
  (let ((shown (contexture-ert-model-tests--with contexture-ert-model-tests--pieces
                 (contexture-ert-model-tests--as-anthropic)
                 (contexture-ert-model-tests--check-pieces))))
    (should (eq (plist-get (car shown) :api) 'anthropic))
    (should (equal (plist-get (car shown) :prompt) "Read it."))))

(ert-deftest contexture-ert-model-calls-tools ()
  (dolist (setup (list #'ignore #'contexture-ert-model-tests--as-anthropic))
    (let ((shown
           (contexture-ert-model-tests--with
               '(("I look." (call "list_context")) "There is nothing.")
             (funcall setup)
             (should (equal (contexture-ert-model-tests--said
                             (contexture-ert-model-tests--ask "Look." :tools t :allow (list :list_context)))
                            "There is nothing.")))))
      (should (member "list_context" (plist-get (car shown) :tools)))
      (pcase-let ((`(,call ,result) (last (plist-get (cadr shown) :messages) 2)))
        (should (equal (plist-get (car (plist-get call :calls)) :name) "list_context"))
        (should (eq (plist-get result :role) 'tool))
        (should (equal (plist-get result :call-id)
                       (plist-get (car (plist-get call :calls)) :id)))))))

(ert-deftest contexture-ert-model-fails-as-it-is-told ()
  (dolist (setup (list #'ignore #'contexture-ert-model-tests--as-anthropic))
    (contexture-ert-model-tests--with
        '((error context-too-long "too many tokens") ("Half" (error 500 "gone"))
          ("Half" cut) (error authentication "who are you?"))
      (funcall setup)
      (dolist (regexp '("too many tokens" "gone" "EOF" "who are you"))
        (should (string-match-p
                 regexp (cadr (should-error (contexture-ert-model-tests--ask "Do.")
                                            :type 'contexture-error))))))))

(ert-deftest contexture-ert-model-repeats-what-may-pass ()
  (contexture-ert-model-tests--with '((error rate-limited "slow down") "Now.")
    (should (string-match-p
             "slow down" (cadr (should-error (contexture-ert-model-tests--ask "Do.")
                                             :type 'contexture-error))))
    (should (equal (plist-get (contexture-ert-model-tests--ask "Again.") :content)
                   "Now."))))

(ert-deftest contexture-ert-model-fails-when-its-answers-run-out ()
  (let ((failure (cdr (should-error
                       (contexture-ert-model-tests--with '("One.")
                         (contexture-ert-model-tests--ask "First?")
                         (ignore-errors (contexture-ert-model-tests--ask "Second?")))
                       :type 'ert-test-failed))))
    (should (equal (car failure) '(no-answer-left :shown "Second?" :after 1)))))

(ert-deftest contexture-ert-model-stands-at-its-steps ()
  (contexture-ert-model-tests--with '(("One " (step first) "two" (step second) "."))
    (let (told answer)
      (contexture-watch (lambda (_ params) (push (plist-get params :text) told)))
      (contexture-request 'open-session '(:name "s"))
      (contexture-request-async 'chat '(:session "s" :content "Count.")
                                :success (lambda (it) (setq answer it)))
      (llm-ert-await-step 'first)
      (llm-ert-wait-for (member "One " told))
      (should-not answer)
      (llm-ert-go-on 'first)
      (llm-ert-wait-for (member "two" told))
      (should-not answer)
      (llm-ert-go-on 'second)
      (llm-ert-wait-for answer)
      (should (equal (plist-get answer :content) "One two.")))))

(ert-deftest contexture-ert-model-says-which-steps-were-reached ()
  (let ((llm-ert-timeout 0.05) (llm-ert--steps '((other . ignore))))
    (let ((failure (should-error (llm-ert-go-on 'some)
                                 :type 'ert-test-failed)))
      (should (string-search "steps-reached (other)" (format "%S" failure))))))

(ert-deftest contexture-ert-model-survives-a-client-that-hangs-up ()
  (contexture-ert-model-tests--with '(("One" (step here) "two") "Three")
    (contexture-request 'open-session '(:name "s"))
    (let ((id (contexture-request-async 'chat '(:session "s" :content "Count.")
                                        :error #'ignore)))
      (llm-ert-await-step 'here)
      (contexture--cancel contexture--connection id)
      (contexture-request 'ping)
      (llm-ert-go-on 'here)
      (should (equal (plist-get (contexture-ert-model-tests--ask "Again.") :content)
                     "Three")))))

(ert-deftest contexture-ert-model-joins-a-server-that-runs ()
  (let ((contexture-ert-server-command contexture-test-binary))
    (contexture-ert-with-server
      (contexture-request 'ping)
      (should (equal (length (llm-ert-with-model '("Yes.")
                               (contexture-ert-model-tests--ask "Well?")))
                     1)))))

;;;; gptel

(defconst contexture-ert-model-tests--gptel
  '(progn
     (require 'llm-ert)
     (require 'gptel)
     (require 'gptel-openai)
     (require 'gptel-anthropic)
     (defun ask-with (backend stream)
       (let* ((gptel-backend backend) (gptel-model 'model) (gptel-stream stream)
              (gptel-use-curl (and (executable-find "curl") t)) answered
              (shown
               (llm-ert-with-model '(("Be" "cause."))
                 (setf (gptel-backend-host backend) (llm-ert-host)
                       (gptel-backend-url backend)
                       (concat "http://" (llm-ert-host)
                               (gptel-backend-endpoint backend)))
                 (with-temp-buffer
                   (insert "Why?")
                   (add-hook 'gptel-post-response-functions
                             (lambda (&rest _) (setq answered t)) nil t)
                   (gptel-send)
                   (llm-ert-wait-for answered :timeout 30)
                   (unless (string-search "Because." (buffer-string))
                     (error "Not said: %s" (buffer-string)))))))
         (unless (equal (plist-get (car shown) :prompt) "Why?")
           (error "Not shown: %S" shown))))
     (dolist (stream '(nil t))
       (ask-with (gptel-make-openai "o" :protocol "http" :models '(model) :key "none"
                                    :host "none" :stream t)
                 stream)
       (ask-with (gptel-make-anthropic "a" :protocol "http" :models '(model)
                                       :key "none" :host "none" :stream t)
                 stream))
     (princ "answered"))
  "Form that asks a model with gptel, through both interfaces.")

(ert-deftest contexture-ert-model-answers-gptel ()
  (let ((folders (mapcar #'getenv '("GPTEL_DIR" "COMPAT_DIR" "TRANSIENT_DIR"))))
    (unless (car folders)
      (ert-skip "GPTEL_DIR is not set"))
    (with-temp-buffer
      (let ((status (apply #'call-process
                           (expand-file-name invocation-name invocation-directory)
                           nil t nil "-Q" "--batch"
                           `(,@(cl-loop for folder in (delq nil folders)
                                        append (list "-L" (expand-file-name folder)))
                             "-L" ,contexture--directory "--eval"
                             ,(prin1-to-string contexture-ert-model-tests--gptel)))))
        (ert-info ((buffer-string) :prefix "Output: ")
          (should (equal status 0))
          (should (string-search "answered" (buffer-string))))))))

(provide 'contexture-ert-model-tests)
;;; contexture-ert-model-tests.el ends here
