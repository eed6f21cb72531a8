;;; contexture-ert-handler-tests.el --- Tests of servers written in Lisp  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'contexture-test-helper)

(ert-deftest contexture-ert-handler-answers-for-the-server ()
  (contexture-ert-with-handler
      (lambda (method params)
        (pcase method
          ('list-sets (list 'result (list :manager (plist-get params :manager))))
          ('undo '(error 7 "nothing to undo" (:kind :none)))))
    (should (equal (contexture-request 'list-sets '(:manager "λ")) '(:manager "λ")))
    (should (equal (should-error (contexture-request 'undo '(:manager "m")))
                   '(contexture-error "nothing to undo" 7 (:kind :none))))
    (should (string-search "has no method redo"
                           (cadr (should-error (contexture-request 'redo)))))
    (llm-ert-should-called 'list-sets '(:manager "λ"))))

(ert-deftest contexture-ert-handler-notifies-and-waits-at-steps ()
  (let (told)
    (contexture-ert-with-handler
        (lambda (method _)
          (and (eq method 'chat)
               '((progress (:text "a")) (step middle) (progress (:text "b"))
                 (result (:content "ab")))))
      (contexture-watch (lambda (_ params) (push (plist-get params :text) told)))
      (let (answer)
        (contexture-request-async 'chat nil :success (lambda (it) (setq answer it)))
        (llm-ert-await-step 'middle)
        (llm-ert-wait-for (equal told '("a")))
        (llm-ert-go-on 'middle)
        (llm-ert-wait-for answer)
        (should (equal told '("b" "a"))))
      (llm-ert-server-says '(notify context-changed (:text "c")))
      (llm-ert-wait-for (equal (car told) "c")))))

(ert-deftest contexture-ert-handler-says-garbage-and-hangs-up ()
  (let ((calls 0))
    (contexture-ert-with-handler
        (lambda (method _)
          (when (eq method 'ping)
            (if (= (cl-incf calls) 1)
                '((raw "no message (\n") (raw "(:id half a li") hang-up)
              '(result :pong))))
      (should (eq (contexture-request 'ping) :pong))
      (should (= calls 2))
      (should (member '(received . "no message (") (llm-ert-messages))))))

(ert-deftest contexture-ert-handler-that-hangs-up-in-a-burst-ends-no-emacs ()
  (let ((calls 0))
    (contexture-ert-with-handler
        (lambda (method _)
          (when (eq method 'ping)
            (if (= (cl-incf calls) 1) 'hang-up '(result :pong))))
      (let ((answers 0))
        (dotimes (_ 50)
          (contexture-request-async 'ping nil
                                    :success (lambda (_) (cl-incf answers))))
        (llm-ert-wait-for (= answers 50))))))

(ert-deftest contexture-ert-handler-leaves-the-rest-to-a-real-server ()
  (let ((contexture-ert-server-command contexture-test-binary) told)
    (contexture-ert-with-handler
        (lambda (method _)
          (pcase method
            ('undo '(error 7 "not today"))
            ('chat '((progress (:text "λ")) (result (:content "λ"))))))
      :server '(:args ("--max-items" "1"))
      (contexture-watch (lambda (method params) (push (cons method params) told)))
      (dolist (text '("one" "λ"))
        (contexture-request 'add-item (list :manager "m" :content text)))
      (should (equal (plist-get (contexture-request 'chat) :content) "λ"))
      (should (equal (cadr (should-error (contexture-request 'undo '(:manager "m"))))
                     "not today"))
      (should (equal (mapcar (lambda (it) (plist-get it :content))
                             (contexture-request 'list-items '(:manager "m")))
                     '("λ")))
      (llm-ert-wait-for (and (assq 'progress told) (assq 'context-changed told))))))

(ert-deftest contexture-ert-handler-fails-the-test-if-it-fails ()
  (let ((failure
         (should-error
          (contexture-ert-with-handler (lambda (_ _) (error "Oops"))
            (ignore-errors (contexture-request 'ping)))
          :type 'ert-test-failed)))
    (should (string-search "Oops" (format "%S" failure)))))

(ert-deftest contexture-ert-a-slow-server-answers-late ()
  (let ((contexture-ert-server-command contexture-test-binary))
    (contexture-ert-with-server
      (contexture-ert-slow-server 0.02)
      (let (order)
        (contexture-request-async 'ping nil :success (lambda (_) (push 'answer order)))
        (run-at-time 0.001 nil (lambda () (push 'timer order)))
        (llm-ert-wait-for (memq 'answer order))
        (should (equal order '(answer timer))))
      (contexture-ert-slow-server nil)
      (should (eq (contexture-request 'ping) :pong)))))

(ert-deftest contexture-ert-replays-a-message-at-a-time ()
  (llm-ert-with-files nil
    (let ((file (llm-ert-write-file
                 "x.sexp" "> (:id 1 :method chat)
< (:method \"progress\" :params (:id 1 :text \"a\"))
< (:method \"progress\" :params (:id 1 :text \"b\"))
< (:id 1 :result (:content \"ab\"))\n"))
          told answer)
      (contexture-ert-with-replay file
        :stepwise t
        (contexture-watch (lambda (_ params) (push (plist-get params :text) told)))
        (contexture-request-async 'chat nil :success (lambda (it) (setq answer it)))
        (contexture-ert-next-message)
        (llm-ert-wait-for (equal told '("a")))
        (should (equal (plist-get (contexture-ert-next-message) :method) "progress"))
        (llm-ert-wait-for (equal told '("b" "a")))
        (should-not answer)
        (contexture-ert-next-message)
        (llm-ert-wait-for answer)))))

(provide 'contexture-ert-handler-tests)
;;; contexture-ert-handler-tests.el ends here
