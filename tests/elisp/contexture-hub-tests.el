;;; contexture-hub-tests.el --- Tests of sharing projects  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The buffer of the hub and its switch, with a real server whose hub is away,
;; and with what a hub would say.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-conversations)
(require 'contexture-hub)

(defconst contexture-hub-tests--project
  '(:project "/p/app" :identity "git:h/app" :readers "public"
             :sessions 1 :messages 2 :memories 1 :held 1)
  "What a server says of a project.")

(defmacro contexture-hub-tests--with (answers &rest body)
  "Run BODY in the buffer of the hub, whose server gives ANSWERS.
ANSWERS is a function from a task and its parameters to the hub."
  (declare (indent 1) (debug t))
  `(let (tasks)
     (save-window-excursion
       (cl-letf (((symbol-function 'contexture--project-root) (lambda () "/p/app/"))
                 ((symbol-function 'contexture-request-async)
                  (lambda (_method params &rest keys)
                    (push (plist-get params :hub) tasks)
                    (funcall (plist-get keys :success)
                             (list :hub (funcall ,answers (plist-get params :hub) params))))))
         (unwind-protect (progn (contexture-hub) ,@body)
           (kill-buffer contexture-hub-buffer))))))

(ert-deftest contexture-hub-shares-what-was-seen-and-takes-it-back ()
  (let (shared)
    (contexture-hub-tests--with
        (lambda (task params)
          (pcase task
            (:share (setq shared (plist-get params :readers)))
            (:unshare (setq shared nil)))
          (append (list :address "ann@db/team" :user "ann" :owner "own\u202eer")
                  (pcase task
                    (:preview (list :projects
                                    (list (plist-put (copy-sequence
                                                      contexture-hub-tests--project)
                                                     :readers (plist-get params :readers)))
                                    :held '("message 2 of \"x\"")))
                    (_ (list :projects
                             (and shared (list (plist-put (copy-sequence
                                                           contexture-hub-tests--project)
                                                          :readers shared))))))))
      (should (string-match-p "\\[ \\] Not shared: /p/app" (buffer-string)))
      (should (string-match-p "Held back, looks like a secret: message 2" (buffer-string)))
      (should (string-match-p "1 conversation, 2 messages, 1 memory; held back: 1 text"
                              (buffer-string)))
      (should-not (string-match-p "\u202e" (buffer-string)))
      ;; No switch without a yes.
      (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
        (contexture-hub-switch))
      (should-not (memq :share tasks))
      (contexture-hub-choose-readers "team")
      (should (string-match-p "Would be shared with the members of team" (buffer-string)))
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (prompt) (string-match-p "the members of team" prompt))))
        (contexture-hub-switch))
      (should (equal shared "team"))
      (should (string-match-p "\\[X\\] Shared: /p/app" (buffer-string)))
      (cl-letf (((symbol-function 'y-or-n-p) #'always))
        (contexture-hub-switch))
      (should-not shared)
      (should (string-match-p "\\[ \\] Not shared" (buffer-string))))))

;; Whatever the order in which answers come, what is shared is what is shown.
(ert-deftest contexture-hub-shares-nothing-but-what-it-shows ()
  (dolist (project '("/p/app/" "/p/other/"))
    (dolist (order '(identity nreverse))
      (dolist (count '(1 2 3))
        (let (waiting (root "/p/app/"))
          (save-window-excursion
            (cl-letf (((symbol-function 'contexture--project-root) (lambda () root))
                      ((symbol-function 'contexture-request-async)
                       (lambda (_method params &rest keys)
                         (push (cons params (plist-get keys :success)) waiting)))
                      ((symbol-function 'y-or-n-p) (lambda (&rest _) t)))
              (cl-flet ((answer (how)
                          (pcase-dolist (`(,params . ,success)
                                         (funcall how (cl-shiftf waiting nil)))
                            (funcall success
                                     (list :hub
                                           (list :address "ann@db/team" :projects
                                                 (and (eq (plist-get params :hub) :preview)
                                                      (list (append
                                                             (list :project (plist-get params :project))
                                                             contexture-hub-tests--project)))))))))
                (unwind-protect
                    (progn
                      (contexture-hub)
                      (answer #'identity)
                      (answer #'identity)
                      (setq root project)
                      ;; What the hub said of another project is gone at once.
                      (contexture-hub)
                      (should-error (contexture-hub-switch) :type 'user-error)
                      (setq root "/p/app/")
                      (contexture-hub)
                      (setq root project)
                      (contexture-hub)
                      (dotimes (_ count) (answer order))
                      (when (ignore-errors (contexture-hub-switch) t)
                        (should (string-search (concat "Not shared: " project) (buffer-string)))
                        (should (equal project (plist-get (caar waiting) :project)))))
                  (kill-buffer contexture-hub-buffer))))))))))

(ert-deftest contexture-hub-without-a-hub-says-how-to-get-one ()
  (contexture-test-with-server
    (save-window-excursion
      (contexture-hub)
      (unwind-protect
          (progn
            (llm-ert-wait-for (string-match-p "no hub is configured" (buffer-string)))
            (should-error (contexture-hub-switch) :type 'user-error))
        (kill-buffer contexture-hub-buffer)))))

;; What another machine has is shared there.
(ert-deftest contexture-hub-has-no-switch-for-a-remote-project ()
  (contexture-hub-tests--with
      (lambda (_task _params) (list :address "ann@db/team" :user "ann" :owner "ann"))
    (cl-letf (((symbol-function 'contexture--project-root) #'ignore))
      (contexture-hub))
    (should (string-search "in no project of this machine" (buffer-string)))
    (should-not (string-search "Not shared" (buffer-string)))
    (should-error (contexture-hub-switch) :type 'user-error)))

(ert-deftest contexture-hub-hits-say-whose-they-are ()
  (save-window-excursion
    (cl-letf (((symbol-function 'contexture-conversations--call)
               (lambda (_method _params success)
                 (funcall success '((:session "mine" :id "ses-1" :message "msg-1"
                                              :role :user :snippet "own words")
                                    (:session "copy" :id "ses-2" :snippet "theirs"
                                              :machine "laptop")))))
              ((symbol-function 'contexture-request-async)
               (lambda (_method params &rest keys)
                 (funcall (plist-get keys :success)
                          (and (plist-get params :hub)
                               '((:session "of ben" :id "hub-7" :message "msg-3" :role :user
                                           :snippet "other words" :machine "desk"
                                           :shared-by "ben")))))))
      (contexture-conversation-search "words")
      (unwind-protect
          (let ((text (buffer-string)))
            (should (string-match-p "mine .* own words" text))
            (should (string-match-p "\\[laptop\\] theirs" text))
            (should (string-match-p "\\[ben at desk\\] other words" text)))
        (kill-buffer contexture-conversation-search-buffer)))))

(provide 'contexture-hub-tests)

;;; contexture-hub-tests.el ends here
